#pragma once
// Output files and folders of the subcommands.

#include <string>

namespace fusescope::cli {

// Writes a whole text file or leaves what was there. Throws InputError.
void write_text(const std::string& path, const std::string& text);

// Makes the folder and its parents. Throws InputError if that fails, if `path` is a file, or if nothing
// may be created in it; `option` names where the path came from.
void make_folder(const std::string& path, const std::string& option);

bool is_missing_or_empty(const std::string& folder);

std::string joined(const std::string& folder, const std::string& name);  // folder/name

std::string utc_now();  // "2026-01-31T12:00:00Z"

}  // namespace fusescope::cli

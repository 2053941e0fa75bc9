#pragma once
// Strict reading of a JSON document: every value is asked for by key with its type, every error
// names the file, the JSON path and the value, and a key that nobody asked for is refused with a
// suggestion.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fusescope {

using Json = nlohmann::json;

// A text as JSON; nothing if it is not JSON, holds a number beyond a double's range, or nests so deep
// that walking the document could exhaust the stack.
std::optional<Json> parse_json(std::string_view text);

// A whole file as JSON, inflated when it is gzip. Throws InputError: missing, unreadable, a folder, not
// JSON (with line and column), a number out of range, nested too deep.
Json read_json_file(const std::string& path);

// A view of one value in a document that remembers where it came from. Copies are cheap; the
// document must outlive it.
class JsonReader {
 public:
  JsonReader(std::string file, const Json& value, std::string path = "");

  const Json& value() const { return *value_; }
  const std::string& file() const { return file_; }
  const std::string& path() const { return path_; }

  bool has(const std::string& key) const;
  JsonReader at(const std::string& key) const;  // throws if missing
  JsonReader element(std::size_t index) const;  // of an array
  std::size_t size() const;                     // of an array; throws if it is not one
  std::vector<std::string> keys() const;        // of an object; throws if it is not one

  std::string as_string() const;
  double as_number() const;  // finite
  double as_number(double least, double most) const;
  long long as_integer(long long least, long long most) const;
  bool as_bool() const;
  // One of `names`, given as a string; returns its index.
  std::size_t as_choice(const std::vector<std::string>& names) const;

  // Refuses any key of this object that is not in `known`.
  void only(const std::vector<std::string>& known) const;

  [[noreturn]] void refuse(const std::string& problem, const std::string& accepted = "") const;

 private:
  std::string file_;
  const Json* value_;
  std::string path_;
};

}  // namespace fusescope

#include "timeline/writers.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "timeline/atomic_file.hpp"
#include "timeline/store.hpp"

namespace fusescope::timeline {
namespace {

void write_store(const Timeline& timeline, std::ostream& out) {
  out << encode_timeline(timeline);
}

}  // namespace

std::span<const Format> formats() {
  static constexpr std::array<Format, 4> kFormats = {{
      {"perfetto", ".pftrace",
       "Perfetto protobuf: open at ui.perfetto.dev, query with trace_processor", write_perfetto},
      {"chrome", ".json", "Chrome trace event JSON: ui.perfetto.dev, chrome://tracing",
       write_chrome},
      {"nsys-sqlite", ".sqlite",
       "Nsight Systems export (SQLite): tools that read `nsys export` files", write_nsys_sqlite},
      {"fst", ".fst", "fusescope's own, lossless: what every other command reads", write_store},
  }};
  return kFormats;
}

const Format& find_format(std::string_view name, const std::string& option) {
  std::vector<std::string> names;
  for (const Format& format : formats()) {
    if (format.name == name) {
      return format;
    }
    names.emplace_back(format.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw InputError({option, "",
                    "unknown format \"" + std::string(name) + "\"" +
                        (nearest.empty() ? "" : ", did you mean \"" + nearest + "\"?"),
                    spoken_list(names)});
}

const Format* format_of_path(std::string_view path) {
  const auto all = formats();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Format& format) {
    return path.ends_with(format.extension);
  });
  return found == all.end() ? nullptr : &*found;
}

void write_timeline(const Timeline& timeline, const std::string& path, const Format& format) {
  AtomicFile file(path);
  format.write(timeline, file.stream());
  file.commit();
}

}  // namespace fusescope::timeline

#include "sweep/trial_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "engine/engine.hpp"
#include "sweep/knob_json.hpp"

namespace fusescope::sweep {
namespace {

// The first bytes of every log: what tells a log that was cut off in its first line from another's
// file.
constexpr std::string_view kMarker = R"({"format":"fusescope-trials","version":2,)";
constexpr std::string_view kAnother =
    "a log of the same program, device, problem and sweep; or another output folder";

LogHeader header_from_line(std::string_view line, const std::string& file) {
  if (!line.starts_with(kMarker)) {
    throw InputError({file, "line 1", "is not the first line of a trial log",
                      "a log that fusescope wrote; or another output folder"});
  }
  const std::optional<Json> parsed = parse_json(line);
  if (!parsed) {
    throw InputError(
        {file, "line 1", "is not a whole JSON object",
         "the line as fusescope wrote it; restore the file or use a new output folder"});
  }
  const JsonReader reader(file, *parsed, "line 1");
  LogHeader header;
  header.fusescope = reader.at("fusescope").as_string();
  header.binary = reader.at("binary").as_string();
  header.engine = reader.at("engine").as_string();
  header.device = reader.at("device").as_string();
  header.problem = reader.at("problem").as_string();
  header.problem_hash = reader.at("problem_hash").as_string();
  header.sweep = reader.at("sweep").as_string();
  reader.at("identity").keys();  // an object
  header.identity = reader.at("identity").value().dump();
  header.command = reader.at("command").as_string();
  header.started = reader.at("started").as_string();
  const JsonReader limits = reader.at("limits");
  constexpr int kMost = std::numeric_limits<int>::max();
  header.limits.name = limits.at("name").as_string();
  header.limits.sms = static_cast<int>(limits.at("sms").as_integer(0, kMost));
  header.limits.smem_per_block = static_cast<int>(limits.at("smem_per_block").as_integer(0, kMost));
  header.limits.fetches_first = limits.at("fetches_first").as_bool();
  if (limits.has("wgmma")) {  // older logs are of devices that have it, or no room for it
    header.limits.wgmma = limits.at("wgmma").as_bool();
  }
  return header;
}

LogContents parse_log(const std::string& text, const std::string& file) {
  LogContents contents;
  std::size_t begin = 0;
  int number = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    const std::string_view line(text.data() + begin, end - begin);
    ++number;
    if (number == 1) {
      contents.header = header_from_line(line, file);
    } else {
      contents.trials.push_back(trial_from_line(line, file, fmt::format("line {}", number)));
    }
    begin = end + 1;
  }
  contents.whole_bytes = begin;
  contents.torn = text.substr(begin);
  return contents;
}

std::string read_all(int file, const std::string& path) {
  struct stat status = {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    throw InputError({path, "", "is not a regular file", "the path of a trial log"});
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got =
        ::pread(file, text.data() + filled, text.size() - filled, static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      throw InputError({path, "", fmt::format("cannot be read: {}", std::strerror(errno)),
                        "a readable trial log"});
    }
    if (got == 0) {
      break;
    }
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

// "/axes/tokens_per_block was [4,8], is [4]": objects are compared by key, everything else as a
// whole.
void add_differences(const Json& was, const Json& is, const std::string& path,
                     std::vector<std::string>& differences) {
  if (was == is) {
    return;
  }
  if (!was.is_object() || !is.is_object()) {
    differences.push_back(fmt::format("{} was {}, is {}", path, was.dump(), is.dump()));
    return;
  }
  for (const auto& item : was.items()) {
    const Json now = is.value(item.key(), Json());
    add_differences(item.value(), now, path + "/" + item.key(), differences);
  }
  for (const auto& item : is.items()) {
    if (!was.contains(item.key())) {
      add_differences(Json(), item.value(), path + "/" + item.key(), differences);
    }
  }
}

}  // namespace

int rest_ms(const LogHeader& header) {
  const Json identity = Json::parse(header.identity);
  const JsonReader reader("the trial log's identity", identity);
  const bool rested = reader.has("measure") && reader.at("measure").has("rest_ms");
  return rested && header.engine != "sim"
             ? static_cast<int>(
                   reader.at("measure").at("rest_ms").as_integer(0, engine::kMostRestMs))
             : 0;
}

std::string to_line(const LogHeader& header) {
  OrderedJson line;
  line["format"] = "fusescope-trials";
  line["version"] = 2;
  line["fusescope"] = header.fusescope;
  line["binary"] = header.binary;
  line["engine"] = header.engine;
  line["device"] = header.device;
  line["problem"] = header.problem;
  line["problem_hash"] = header.problem_hash;
  line["sweep"] = header.sweep;
  line["identity"] = Json::parse(header.identity);
  line["command"] = header.command;
  line["started"] = header.started;
  line["limits"] = {{"name", header.limits.name},
                    {"sms", header.limits.sms},
                    {"smem_per_block", header.limits.smem_per_block},
                    {"fetches_first", header.limits.fetches_first},
                    {"wgmma", header.limits.wgmma}};
  return line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string differences(const LogHeader& log, const LogHeader& now) {
  std::vector<std::string> all;
  const auto compare = [&](std::string_view what, const std::string& was, const std::string& is) {
    if (was != is) {
      all.push_back(fmt::format("{} was {}, is {}", what, was, is));
    }
  };
  compare("the program", log.fusescope, now.fusescope);
  compare("the program's file (by its hash)", log.binary, now.binary);
  compare("the engine", log.engine, now.engine);
  compare("the device", log.device, now.device);
  if (log.problem_hash != now.problem_hash) {
    all.push_back(log.problem != now.problem
                      ? fmt::format("the problem was {}, is {}", log.problem, now.problem)
                      : fmt::format("the routing of {} has other values", now.problem));
  }
  add_differences(Json::parse(log.identity), Json::parse(now.identity), "", all);
  return fmt::format("{}", fmt::join(all, "; "));
}

LogContents read_trial_log(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    throw InputError({path, "", fmt::format("cannot be read: {}", std::strerror(errno)),
                      "the path of a trial log (trials.jsonl of a sweep's folder)"});
  }
  std::string text;
  try {
    text = read_all(file, path);
  } catch (...) {
    ::close(file);
    throw;
  }
  ::close(file);
  LogContents contents = parse_log(text, path);
  if (contents.whole_bytes == 0) {
    throw InputError({path, "line 1", "the log has no whole line",
                      "a log that fusescope wrote; run the sweep again to start it anew"});
  }
  return contents;
}

TrialLog::TrialLog(const std::string& path, const LogHeader& header) : path_(path) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) {
    refuse_write(errno);
  }
  try {
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) {
        throw InputError({path, "", fmt::format("cannot be locked: {}", std::strerror(errno)),
                          "an output folder on a disk with file locks"});
      }
      throw InputError({path, "", "is being written by another process",
                        "one sweep at a time per output folder"});
    }
    const std::string text = read_all(file_, path);
    if (text.find('\n') != std::string::npos) {
      resume(header, text);
    } else if (std::string_view(text).substr(0, kMarker.size()) == kMarker.substr(0, text.size())) {
      if (!text.empty()) {
        repair_ = "the log was cut off in its first line and starts anew";
      }
      create(header);
    } else {
      throw InputError({path, "line 1", "is not the first line of a trial log",
                        "a log that fusescope wrote; or another output folder"});
    }
  } catch (...) {
    ::close(file_);
    throw;
  }
}

TrialLog::~TrialLog() {
  ::close(file_);
}

void TrialLog::create(const LogHeader& header) {
  if (::ftruncate(file_, 0) != 0) {
    refuse_write(errno);
  }
  write_line(to_line(header));
  // The file's entry in its folder must be on the disk, too.
  const std::string folder = std::filesystem::absolute(path_).parent_path().string();
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    ::fsync(directory);
    ::close(directory);
  }
}

void TrialLog::resume(const LogHeader& header, const std::string& text) {
  LogContents contents = parse_log(text, path_);
  const std::string different = differences(contents.header, header);
  if (!different.empty()) {
    throw InputError(
        {path_, "line 1", "is the log of another sweep: " + different, std::string(kAnother)});
  }
  if (!contents.torn.empty()) {
    repair_ = fmt::format("cut off the last line ({} bytes): its trial had not ended",
                          contents.torn.size());
    if (::ftruncate(file_, static_cast<off_t>(contents.whole_bytes)) != 0) {
      refuse_write(errno);
    }
  }
  size_ = contents.whole_bytes;
  trials_ = std::move(contents.trials);
  resumed_ = true;
}

void TrialLog::append(const Trial& trial) {
  write_line(to_line(trial));
  trials_.push_back(trial);
}

void TrialLog::write_line(const std::string& line) {
  const std::string bytes = line + "\n";
  const auto give_up = [&](int error_number) {
    // Should this fail too, a torn line stays, and the next run cuts it off.
    [[maybe_unused]] const int undone = ::ftruncate(file_, static_cast<off_t>(size_));
    refuse_write(error_number);
  };
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t put = ::pwrite(file_, bytes.data() + written, bytes.size() - written,
                                 static_cast<off_t>(size_ + written));
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put < 0) {
      give_up(errno);
    }
    written += static_cast<std::size_t>(put);
  }
  if (::fdatasync(file_) != 0) {
    give_up(errno);
  }
  size_ += bytes.size();
}

void TrialLog::refuse_write(int error_number) const {
  throw InputError({path_, "", fmt::format("cannot be written: {}", std::strerror(error_number)),
                    "an output folder on a disk with room that you may write to"});
}

}  // namespace fusescope::sweep

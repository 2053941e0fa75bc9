#include "base/json_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/file_bytes.hpp"
#include "base/suggest.hpp"

namespace fusescope {
namespace {

// A value as an error shows it: whole when short, its beginning when long.
std::string shown(const Json& value) {
  std::string text = value.dump();
  constexpr std::size_t kLongest = 60;
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

constexpr int kDeepest = 100;  // levels; a document of ours has fewer than ten

// Counts the brackets outside of strings.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char character = text[i];
    if (in_string) {
      i += character == '\\' ? 1 : 0;
      in_string = character != '"';
    } else if (character == '[' || character == '{') {
      if (++depth > kDeepest) {
        return true;
      }
    } else if (character == ']' || character == '}') {
      --depth;
    } else {
      in_string = character == '"';
    }
  }
  return false;
}

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = text.rfind('\n', byte == 0 ? 0 : byte - 1);
  const std::size_t column =
      newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return "line " + std::to_string(line) + " column " + std::to_string(column);
}

// Why parse_json() has nothing to return for a file's text.
[[noreturn]] void refuse_text(const std::string& path, const std::string& text) {
  const std::string accepted = "a JSON document (RFC 8259, without comments)";
  if (is_too_deep(text)) {
    throw InputError({path, "", "nests deeper than " + std::to_string(kDeepest) + " levels",
                      "a JSON document with fewer levels"});
  }
  try {
    [[maybe_unused]] const Json fine = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw InputError({path, line_and_column(text, std::min(error.byte, text.size())),
                      "is not valid JSON", accepted});
  } catch (const Json::out_of_range&) {
    throw InputError({path, "", "holds a number that is out of range", "numbers up to 1.8e308"});
  }
  throw InputError({path, "", "is not valid JSON", accepted});
}

}  // namespace

std::optional<Json> parse_json(std::string_view text) {
  if (is_too_deep(text)) {
    return std::nullopt;
  }
  Json document = Json::parse(text, nullptr, false);
  return document.is_discarded() ? std::nullopt : std::optional(std::move(document));
}

Json read_json_file(const std::string& path) {
  const std::string text = read_file_bytes(path);
  if (std::optional<Json> document = parse_json(text)) {
    return *std::move(document);
  }
  refuse_text(path, text);
}

JsonReader::JsonReader(std::string file, const Json& value, std::string path)
    : file_(std::move(file)), value_(&value), path_(std::move(path)) {}

bool JsonReader::has(const std::string& key) const {
  return value_->is_object() && value_->contains(key);
}

JsonReader JsonReader::at(const std::string& key) const {
  if (!value_->is_object()) {
    refuse(shown(*value_) + " is not an object", "an object with the key \"" + key + "\"");
  }
  const auto found = value_->find(key);
  if (found == value_->end()) {
    refuse("the key \"" + key + "\" is missing", "");
  }
  return {file_, *found, path_ + "/" + key};
}

JsonReader JsonReader::element(std::size_t index) const {
  return {file_, value_->at(index), path_ + "/" + std::to_string(index)};
}

std::size_t JsonReader::size() const {
  if (!value_->is_array()) {
    refuse(shown(*value_) + " is not an array", "an array");
  }
  return value_->size();
}

std::vector<std::string> JsonReader::keys() const {
  if (!value_->is_object()) {
    refuse(shown(*value_) + " is not an object", "an object");
  }
  std::vector<std::string> names;
  for (const auto& item : value_->items()) {
    names.push_back(item.key());
  }
  return names;
}

std::string JsonReader::as_string() const {
  if (!value_->is_string()) {
    refuse(shown(*value_) + " is not a string", "a string");
  }
  return value_->get<std::string>();
}

double JsonReader::as_number() const {
  return as_number(std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max());
}

double JsonReader::as_number(double least, double most) const {
  if (!value_->is_number()) {
    refuse(shown(*value_) + " is not a number", "a number");
  }
  const double number = value_->get<double>();
  if (!std::isfinite(number) || number < least || number > most) {
    std::ostringstream range;
    range << "a number from " << least << " to " << most;
    refuse(shown(*value_) + " is out of range", range.str());
  }
  return number;
}

long long JsonReader::as_integer(long long least, long long most) const {
  const std::string accepted =
      "an integer from " + std::to_string(least) + " to " + std::to_string(most);
  if (!value_->is_number_integer()) {
    refuse(shown(*value_) + " is not an integer", accepted);
  }
  const bool huge = value_->is_number_unsigned() &&
                    value_->get<unsigned long long>() >
                        static_cast<unsigned long long>(std::numeric_limits<long long>::max());
  if (huge || value_->get<long long>() < least || value_->get<long long>() > most) {
    refuse(shown(*value_) + " is out of range", accepted);
  }
  return value_->get<long long>();
}

bool JsonReader::as_bool() const {
  if (!value_->is_boolean()) {
    refuse(shown(*value_) + " is not a boolean", "true or false");
  }
  return value_->get<bool>();
}

std::size_t JsonReader::as_choice(const std::vector<std::string>& names) const {
  if (value_->is_string()) {
    const auto found = std::find(names.begin(), names.end(), value_->get<std::string>());
    if (found != names.end()) {
      return static_cast<std::size_t>(found - names.begin());
    }
  }
  refuse(shown(*value_) + " is not a known choice", spoken_list(names));
}

void JsonReader::only(const std::vector<std::string>& known) const {
  for (const std::string& key : keys()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string nearest = nearest_name(key, known);
      JsonReader(file_, value_->at(key), path_ + "/" + key)
          .refuse("unknown key \"" + key + "\"" +
                      (nearest.empty() ? "" : ", did you mean \"" + nearest + "\"?"),
                  spoken_list(known));
    }
  }
}

void JsonReader::refuse(const std::string& problem, const std::string& accepted) const {
  throw InputError({file_, path_.empty() ? "/" : path_, problem, accepted});
}

}  // namespace fusescope

// simdjson's header needs one function of its library. It is looked up when the first trace is read, so
// that a fusescope carried to a machine without the library still starts and does everything else.

#include "timeline/import/event_parser.hpp"

#include <dlfcn.h>
#include <simdjson.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "timeline/import/event_scanner.hpp"

namespace {

using ActiveImplementation = simdjson::internal::atomic_ptr<const simdjson::implementation>& (*)();

ActiveImplementation look_up() {
  void* library = dlopen(FUSESCOPE_SIMDJSON_SONAME, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return nullptr;
  }
  return reinterpret_cast<ActiveImplementation>(
      dlsym(library, "_ZN8simdjson25get_active_implementationEv"));
}

ActiveImplementation active_implementation() {
  static const ActiveImplementation kFound = look_up();
  return kFound;
}

}  // namespace

namespace simdjson {

internal::atomic_ptr<const implementation>& get_active_implementation() {
  return active_implementation()();
}

}  // namespace simdjson

namespace fusescope::timeline {
namespace {

namespace od = simdjson::ondemand;

static_assert(EventScanner::kPadding >= simdjson::SIMDJSON_PADDING);

std::string_view trimmed(std::string_view token) {
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') {
    token.remove_suffix(1);
  }
  return token;
}

bool is_flow(std::string_view phase) {
  return phase == "\"s\"" || phase == "\"f\"" || phase == "\"t\"";
}

std::string_view* place_of(std::string_view key, EventFields& fields) {
  switch (key.size()) {
    case 2:
      return key == "ph" ? &fields.phase : key == "ts" ? &fields.ts : nullptr;
    case 3:
      return key == "cat"   ? &fields.category
             : key == "dur" ? &fields.dur
             : key == "pid" ? &fields.pid
             : key == "tid" ? &fields.tid
                            : nullptr;
    case 4:
      return key == "name" ? &fields.name : nullptr;
    default:
      return nullptr;
  }
}

std::string_view* place_of_arg(std::string_view key, EventFields& fields) {
  switch (key.size()) {
    case 4:
      return key == "name" ? &fields.args_name : nullptr;
    case 5:
      return key == "bytes" ? &fields.bytes : nullptr;
    case 6:
      return key == "device" ? &fields.device : key == "stream" ? &fields.stream : nullptr;
    case 11:
      return key == "correlation" ? &fields.correlation : nullptr;
    default:
      return nullptr;
  }
}

// A key's text up to its closing quote.
std::string_view text_of(od::raw_json_string key) {
  const char* begin = key.raw();
  const char* end = begin;
  while (*end != '"') {
    ++end;
  }
  return {begin, static_cast<std::size_t>(end - begin)};
}

bool read_args(od::object args, EventFields& fields) {
  for (auto entry : args) {
    od::field field;
    if (std::move(entry).get(field) != simdjson::SUCCESS) {
      return false;
    }
    if (std::string_view* place = place_of_arg(text_of(field.key()), fields)) {
      *place = trimmed(field.value().raw_json_token());
    }
  }
  return true;
}

bool read_fields(od::object object, EventFields& fields) {
  for (auto entry : object) {
    od::field field;
    if (std::move(entry).get(field) != simdjson::SUCCESS) {
      return false;
    }
    const std::string_view key = text_of(field.key());
    if (key == "args") {
      od::object args;
      if (field.value().get_object().get(args) == simdjson::SUCCESS && !read_args(args, fields)) {
        return false;
      }
    } else if (std::string_view* place = place_of(key, fields)) {
      *place = trimmed(field.value().raw_json_token());
      if (place == &fields.phase && is_flow(fields.phase)) {
        return true;
      }
    }
  }
  return true;
}

}  // namespace

struct EventParser::State {
  od::parser parser;
};

EventParser::EventParser() : state_(std::make_unique<State>()) {
  if (active_implementation() == nullptr) {
    throw InputError({"", "",
                      "JSON traces need the library " FUSESCOPE_SIMDJSON_SONAME
                      ", which is not installed on this machine",
                      "installing simdjson (Debian: libsimdjson-dev), or a Nsight Systems SQLite "
                      "file, which needs nothing"});
  }
}

EventParser::~EventParser() = default;

bool EventParser::parse(std::string_view event, EventFields& fields) {
  fields = {};
  od::document document;
  od::object object;
  return state_->parser.iterate(event.data(), event.size(), event.size() + EventScanner::kPadding)
                 .get(document) == simdjson::SUCCESS &&
         document.get_object().get(object) == simdjson::SUCCESS && read_fields(object, fields);
}

std::string unquoted(std::string_view token) {
  if (token.size() < 2 || token.front() != '"' || token.back() != '"') {
    return std::string(token);
  }
  const std::string_view inner = token.substr(1, token.size() - 2);
  if (inner.find('\\') == std::string_view::npos) {
    return std::string(inner);
  }
  const auto value = nlohmann::json::parse(token, nullptr, false);
  return value.is_string() ? value.get<std::string>() : std::string(inner);
}

}  // namespace fusescope::timeline

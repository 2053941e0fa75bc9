#include "sweep/knob_json.hpp"

#include <nlohmann/json.hpp>
#include <variant>

namespace fusescope::sweep {

KnobValue knob_value(const JsonReader& reader) {
  const Json& value = reader.value();
  if (value.is_boolean()) {
    return value.get<bool>();
  }
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_number_integer()) {
    // An integer too large for any knob stays a number, so that the knob itself refuses it.
    constexpr long long kLargest = 1LL << 53;
    const double number = value.get<double>();
    if (number < static_cast<double>(-kLargest) || number > static_cast<double>(kLargest)) {
      return number;
    }
    return value.get<long long>();
  }
  if (value.is_number_float()) {
    return value.get<double>();
  }
  reader.refuse("a knob's value cannot be " + std::string(value.type_name()),
                "a number, a string, true or false");
}

Json to_json(const KnobValue& value) {
  return std::visit([](const auto& given) { return Json(given); }, value);
}

OrderedJson to_json(const Config& config) {
  OrderedJson object = OrderedJson::object();
  for (const Knob& knob : knobs()) {
    object[std::string(knob.name)] =
        std::visit([](const auto& given) { return OrderedJson(given); }, knob.get(config));
  }
  return object;
}

void set_knobs(Config& config, const JsonReader& object) {
  for (const std::string& name : object.keys()) {
    const JsonReader value = object.at(name);
    set_knob(config, name, knob_value(value), value.file(), value.path());
  }
}

}  // namespace fusescope::sweep

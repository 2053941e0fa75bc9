#pragma once
// Knobs as JSON: {"dispatch_comm_sms": 8, "all_hands": true}. Sweep files, trial logs and run
// folders share this form.

#include <nlohmann/json_fwd.hpp>

#include "base/json_reader.hpp"
#include "layer/config.hpp"

namespace fusescope::sweep {

using OrderedJson = nlohmann::ordered_json;

// A JSON scalar as a knob's value. Throws InputError for anything else.
KnobValue knob_value(const JsonReader& reader);
Json to_json(const KnobValue& value);

// Every knob of a config, in the registry's order.
OrderedJson to_json(const Config& config);

// Sets the knobs that an object names, on top of what `config` holds. Throws InputError for an
// unknown knob (with a suggestion) and for a value that a knob cannot take, naming file and JSON
// path.
void set_knobs(Config& config, const JsonReader& object);

}  // namespace fusescope::sweep

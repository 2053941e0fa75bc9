#pragma once
// `list tuned`: what the user's own tuned table and the shipped ones hold, in the order in which "run --config tuned"
// looks.

namespace fusescope::cli {

void list_tuned(bool json);

}  // namespace fusescope::cli

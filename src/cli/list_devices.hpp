#pragma once
// `list devices`: this machine's GPUs, how they reach each other, what the cuda engine can do with them.

namespace fusescope::cli {

void list_devices(bool json);

}  // namespace fusescope::cli

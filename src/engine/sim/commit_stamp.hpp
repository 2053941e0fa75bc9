#pragma once
// The commit that a timeline is stamped with. Alone in its file: it changes with every commit.

namespace fusescope::engine::sim {

const char* commit_stamp();

}  // namespace fusescope::engine::sim

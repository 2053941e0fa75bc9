#pragma once
// What threads and places are called, in findings and traces. Literals and small numbers: a text is made
// only when somebody reads it.

#include <cstdint>
#include <string>

namespace fusescope::protocol {

// What a thread does; what a strategy starves.
enum class Role : std::uint8_t {
  stream,
  exchange,
  build,
  barrier,
  copy,
  puller,
  producer,
  consumer,
  storer,
  front,
  summer,
  pusher,
  reducer,
  relay,
  scheduler,
  load,   // a copy into shared memory
  store,  // a bulk copy out of shared memory
};
inline constexpr int kRoles = 17;

struct Label {
  Role role = Role::stream;
  const char* kernel = "";
  std::int16_t rank = 0;
  std::int16_t block = -1;
  std::int16_t index = -1;
};
using LabelId = std::int32_t;

// A place in memory: "gathered[3] of rank 1".
struct Name {
  const char* what = "";
  std::int16_t rank = -1;
  std::int16_t i = -1;
  std::int16_t j = -1;
  std::int16_t k = -1;
};

const char* to_string(Role role);
std::string to_string(const Label& label);
std::string to_string(const Name& name);

}  // namespace fusescope::protocol

#include "protocol/names.hpp"

#include <fmt/format.h>

namespace fusescope::protocol {

const char* to_string(Role role) {
  switch (role) {
    case Role::stream:
      return "stream";
    case Role::exchange:
      return "exchange";
    case Role::build:
      return "build";
    case Role::barrier:
      return "barrier";
    case Role::copy:
      return "copy";
    case Role::puller:
      return "puller";
    case Role::producer:
      return "producer";
    case Role::consumer:
      return "consumer";
    case Role::storer:
      return "storer";
    case Role::front:
      return "front";
    case Role::summer:
      return "summer";
    case Role::pusher:
      return "pusher";
    case Role::reducer:
      return "reducer";
    case Role::relay:
      return "relay";
    case Role::scheduler:
      return "scheduler";
    case Role::load:
      return "load";
    case Role::store:
      return "bulk store";
  }
  return "?";
}

std::string to_string(const Label& label) {
  std::string text = fmt::format("rank {} {}", label.rank, label.kernel);
  if (label.block >= 0) {
    text += fmt::format(" block {}", label.block);
  }
  text += fmt::format(" {}", to_string(label.role));
  if (label.index >= 0) {
    text += fmt::format(" {}", label.index);
  }
  return text;
}

std::string to_string(const Name& name) {
  std::string text = name.what;
  for (const std::int16_t index : {name.i, name.j, name.k}) {
    if (index >= 0) {
      text += fmt::format("[{}]", index);
    }
  }
  return name.rank < 0 ? text : text + fmt::format(" of rank {}", name.rank);
}

}  // namespace fusescope::protocol

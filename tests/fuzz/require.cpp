#include <stdexcept>
#include <string>

#include "targets.hpp"

namespace fusescope::fuzz {

void require(bool holds, const char* promise) {
  if (!holds) {
    throw std::logic_error(std::string("does not hold: ") + promise);
  }
}

}  // namespace fusescope::fuzz

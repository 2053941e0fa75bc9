#include "base/error.hpp"

#include <utility>

namespace fusescope {
namespace {

std::string sentence(const InputError::Parts& parts) {
  std::string text;
  for (const std::string* part : {&parts.file, &parts.place}) {
    if (!part->empty()) {
      text += *part + ": ";
    }
  }
  text += parts.problem;
  if (!parts.accepted.empty()) {
    text += "; accepted: " + parts.accepted;
  }
  return text;
}

}  // namespace

InputError::InputError(Parts parts)
    : std::runtime_error(sentence(parts)), parts_(std::move(parts)) {}

}  // namespace fusescope

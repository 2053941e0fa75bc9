#include "ptx_atomics.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <regex>
#include <sstream>

namespace fusescope::kernels::testing {
namespace {

struct Instruction {
  std::string text;
  std::string opcode;
  std::string operands;
};

std::optional<Instruction> parse(std::string line) {
  line.erase(0, line.find_first_not_of(" \t"));
  static const std::regex kPredicate(R"(^@!?%p\d+\s+)");
  line = std::regex_replace(line, kPredicate, "");
  const std::size_t end = line.find(';');
  if (line.empty() || line[0] == '.' || line[0] == '/' || end == std::string::npos) {
    return std::nullopt;
  }
  line.resize(end);
  const std::size_t space = line.find_first_of(" \t");
  if (space == std::string::npos) {
    return std::nullopt;
  }
  const std::size_t operands = line.find_first_not_of(" \t", space);
  return Instruction{line, line.substr(0, space), line.substr(operands)};
}

bool starts_with(const std::string& text, const char* with) {
  return text.rfind(with, 0) == 0;
}

// "%rd1", "%rd2" of "%rd1,[%rd2+8]".
std::vector<std::string> long_registers(const std::string& operands) {
  std::vector<std::string> found;
  static const std::regex kRegister(R"(%rd\d+)");
  for (std::sregex_iterator at(operands.begin(), operands.end(), kRegister), end; at != end; ++at) {
    found.push_back(at->str());
  }
  return found;
}

// A kernel's definitions of 64-bit registers, by register.
using Definitions = std::map<std::string, std::vector<Instruction>>;

class Search {
 public:
  Search(const Definitions& definitions, PtxAtomic& atomic)
      : definitions_(definitions), atomic_(atomic) {}

  void follow(const std::string& name) {
    if (!seen_.insert(name).second) {
      return;
    }
    const auto found = definitions_.find(name);
    if (found == definitions_.end()) {
      atomic_.others.insert(name + " is defined nowhere");
      return;
    }
    for (const Instruction& by : found->second) {
      follow_definition(by, name);
    }
  }

 private:
  // What a register adds to the parameters' beginning; `indexed` if it is not known.
  struct Place {
    int offset = 0;
    bool indexed = false;
  };

  void follow_definition(const Instruction& by, const std::string& name) {
    const std::string sources = by.operands.substr(by.operands.find(',') + 1);
    const bool wide = by.opcode.size() > 2 && by.opcode.substr(by.opcode.size() - 2) == "64";
    if (starts_with(by.opcode, "ld.") && !wide) {
      return;  // 32 bits, widened as they are loaded
    }
    if (starts_with(by.opcode, "ld.param.") && by.operands[0] == '{') {
      follow_parameter(by.operands.substr(by.operands.find('[')), bytes_before(name, by.operands));
    } else if (starts_with(by.opcode, "ld.param.")) {
      follow_parameter(sources, 0);
    } else if (starts_with(by.opcode, "ld.") || by.operands.find('{') != std::string::npos ||
               starts_with(by.opcode, "atom.")) {
      atomic_.others.insert(by.text);
    } else {
      for (const std::string& source : long_registers(sources)) {
        follow(source);
      }
    }
  }

  // Of "{%rd1, %rd2}, [%rd3+8]", to which of them the load goes.
  static int bytes_before(const std::string& name, const std::string& operands) {
    const std::vector<std::string> loaded = long_registers(operands.substr(0, operands.find('}')));
    const auto found = std::find(loaded.begin(), loaded.end(), name);
    return static_cast<int>(found - loaded.begin()) * 8;
  }

  void follow_parameter(const std::string& address, int bytes_behind) {
    std::optional<Place> place = place_of(address);
    if (place) {
      place->offset += bytes_behind;
    }
    if (!place) {
      atomic_.others.insert("ld.param of " + address);
    } else if (place->indexed) {
      atomic_.others.insert("param+" + std::to_string(place->offset) + "[i]");
    } else {
      atomic_.parameters.insert(place->offset);
    }
  }

  // Of "[X+12]", where X is the parameter's name, or a register that is computed from it.
  std::optional<Place> place_of(const std::string& address) const {
    static const std::regex kAddress(R"(^\s*\[([%\w$]+)(?:\+(-?\d+))?\]\s*$)");
    std::smatch parts;
    if (!std::regex_match(address, parts, kAddress)) {
      return std::nullopt;
    }
    std::optional<Place> place = place_of_symbol(parts[1], 0);
    if (place && parts[2].matched) {
      place->offset += std::atoi(parts[2].str().c_str());
    }
    return place;
  }

  std::optional<Place> place_of_symbol(const std::string& name, int depth) const {
    constexpr int kDeepest = 64;
    if (depth > kDeepest) {
      return std::nullopt;
    }
    if (name[0] != '%') {
      const std::string first = "_param_0";
      const bool is_first = name.size() > first.size() &&
                            name.compare(name.size() - first.size(), first.size(), first) == 0;
      return is_first ? std::optional<Place>(Place{}) : std::nullopt;
    }
    const auto found = definitions_.find(name);
    if (found == definitions_.end() || found->second.size() != 1) {
      return std::nullopt;
    }
    const Instruction& by = found->second.front();
    static const std::regex kMove(R"(^[^,]+,\s*([%\w$]+)\s*$)");
    static const std::regex kAdd(R"(^[^,]+,\s*(%rd\d+),\s*(%rd\d+|-?\d+)\s*$)");
    std::smatch parts;
    if (starts_with(by.opcode, "mov.") && std::regex_match(by.operands, parts, kMove)) {
      return place_of_symbol(parts[1], depth + 1);
    }
    if (!starts_with(by.opcode, "add.") || !std::regex_match(by.operands, parts, kAdd)) {
      return std::nullopt;
    }
    for (const int base : {1, 2}) {
      const std::string other = parts[3 - base];
      if (parts[base].str()[0] != '%') {
        continue;
      }
      if (std::optional<Place> place = place_of_symbol(parts[base], depth + 1)) {
        if (other[0] == '%') {
          place->indexed = true;
        } else {
          place->offset += std::atoi(other.c_str());
        }
        return place;
      }
    }
    return std::nullopt;
  }

  const Definitions& definitions_;
  PtxAtomic& atomic_;
  std::set<std::string> seen_;
};

bool is_global_atomic(const Instruction& instruction) {
  // The copy engine's reductions, and those of a multicast address, are atomic too.
  const bool atomic =
      starts_with(instruction.opcode, "atom.") || starts_with(instruction.opcode, "red.") ||
      starts_with(instruction.opcode, "cp.reduce.") || starts_with(instruction.opcode, "multimem.");
  return atomic && (instruction.opcode.find(".shared") == std::string::npos ||
                    instruction.opcode.find(".global") != std::string::npos);
}

void read_kernel(const std::string& name, const std::vector<std::string>& lines, PtxFile& file) {
  Definitions definitions;
  std::vector<Instruction> atomics;
  for (const std::string& line : lines) {
    const std::optional<Instruction> instruction = parse(line);
    if (!instruction) {
      continue;
    }
    if (is_global_atomic(*instruction)) {
      atomics.push_back(*instruction);
    }
    // Stores and branches define nothing; a load of several registers defines them all.
    const bool stores = starts_with(instruction->opcode, "st.");
    const std::string defined =
        instruction->operands[0] == '{'
            ? instruction->operands.substr(0, instruction->operands.find('}'))
            : instruction->operands.substr(0, instruction->operands.find(','));
    if (!stores && defined.find('[') == std::string::npos) {
      for (const std::string& each : long_registers(defined)) {
        definitions[each].push_back(*instruction);
      }
    }
  }
  file.kernels.push_back(name);
  for (const Instruction& instruction : atomics) {
    PtxAtomic atomic{name, instruction.text, {}, {}};
    static const std::regex kAddress(R"(\[(%rd\d+)(?:\+-?\d+)?\])");
    std::smatch address;
    if (std::regex_search(instruction.operands, address, kAddress)) {
      Search(definitions, atomic).follow(address[1]);
    } else {
      atomic.others.insert("no address in " + instruction.text);
    }
    file.atomics.push_back(std::move(atomic));
  }
}

}  // namespace

PtxFile read_ptx(const std::string& text) {
  PtxFile file;
  std::istringstream stream(text);
  static const std::regex kEntry(R"(^\s*(?:\.visible |\.weak )?\.entry ([\w$]+)\()");
  static const std::regex kFunction(R"(^\s*(?:\.visible |\.weak )?\.func\b)");
  std::string kernel;
  std::vector<std::string> body;
  long depth = 0;  // of braces: inline assembly has blocks of its own
  for (std::string line; std::getline(stream, line);) {
    line.resize(std::min(line.find("//"), line.size()));
    std::smatch entry;
    if (std::regex_search(line, entry, kEntry)) {
      kernel = entry[1];
      body.clear();
    } else if (std::regex_search(line, kFunction)) {
      ++file.functions;
    }
    const long before = depth;
    depth += std::count(line.begin(), line.end(), '{') - std::count(line.begin(), line.end(), '}');
    if (depth > 0 && !kernel.empty()) {
      body.push_back(line);
    } else if (depth == 0 && before > 0 && !kernel.empty()) {
      read_kernel(kernel, body, file);
      kernel.clear();
    }
  }
  return file;
}

}  // namespace fusescope::kernels::testing

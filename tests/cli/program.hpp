#pragma once
// Runs the fusescope binary in a folder of its own and keeps what it said. $FUSESCOPE_PROGRAM names another
// than the one that was built beside the tests, for binaries carried to a machine with GPUs.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "base/json_reader.hpp"

namespace fusescope::cli::test {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string program() {
  const char* carried = std::getenv("FUSESCOPE_PROGRAM");
  return carried != nullptr ? std::filesystem::absolute(carried).string() : FUSESCOPE_BINARY;
}

struct Said {
  int code = -1;
  std::string out;
  std::string err;
  Json json() const { return Json::parse(out); }
};

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fusescope-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    write_text(folder_ / "tiny.json", R"({"name": "tiny", "source": "a test", "ranks": 2,
      "tokens_per_rank": 64, "hidden": 256, "experts": 8, "topk": 2, "intermediate": 128})");
    write_text(folder_ / "sweep.json", R"({"name": "small", "shape": "tiny.json",
      "routing": "uniform", "engine": "sim", "profile": "rtx-pro-5000-pcie5",
      "axes": {"dispatch_comm_sms": [8, 16, 24], "tokens_per_block": [4, 8]}, "ladder": true})");
  }
  ~ProgramTest() override { std::filesystem::remove_all(folder_); }

  // `arguments` as a shell takes them, run in the test's folder.
  Said fusescope(const std::string& arguments) const {
    const std::string line = "cd '" + folder_.string() + "' && '" + program() + "' " + arguments +
                             " >.stdout 2>.stderr </dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(folder_ / ".stdout"),
            read_text(folder_ / ".stderr")};
  }

  // Every file below the folder with its content, but for what the last command said.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file() && !entry.path().filename().string().starts_with(".std")) {
        found[entry.path().string()] = read_text(entry.path());
      }
    }
    return found;
  }

  // The command is refused with exit code 2 and one line on stderr that holds each of `parts`; nothing on
  // stdout; and every file is as it was.
  void refused(const std::string& arguments, const std::vector<std::string>& parts) const {
    const auto before = files();
    const Said said = fusescope(arguments);
    EXPECT_EQ(said.code, 2) << arguments << "\n" << said.err;
    EXPECT_EQ(said.out, "") << arguments;
    EXPECT_NE(said.err.find("fusescope: "), std::string::npos) << said.err;
    for (const std::string& part : parts) {
      EXPECT_NE(said.err.find(part), std::string::npos) << said.err << "lacks\n" << part;
    }
    EXPECT_EQ(files(), before) << arguments;
  }

  std::filesystem::path folder_;
};

}  // namespace fusescope::cli::test

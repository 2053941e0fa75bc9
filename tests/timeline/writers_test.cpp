// The table of formats, and files that are written whole or not at all.

#include "timeline/writers.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "base/error.hpp"
#include "timeline/store.hpp"
#include "tiny_layer.hpp"

namespace fusescope::timeline {
namespace {

namespace fs = std::filesystem;

class Writers : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("fusescope_writers_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static std::string read_whole(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }

  fs::path folder_;
};

TEST_F(Writers, EveryFormatWritesAFileThatItsExtensionFinds) {
  std::set<std::string_view> extensions;
  for (const Format& format : formats()) {
    const std::string target = path(std::string("a").append(format.extension));
    EXPECT_EQ(format_of_path(target), &format);
    EXPECT_EQ(&find_format(format.name), &format);
    write_timeline(tiny_layer(), target, format);
    EXPECT_GT(fs::file_size(target), 500u);
    EXPECT_TRUE(extensions.insert(format.extension).second);
  }
  EXPECT_EQ(format_of_path("a.txt"), nullptr);
  EXPECT_EQ(load_timeline(path("a.fst")), tiny_layer());
}

TEST_F(Writers, AnUnknownFormatIsRefusedWithASuggestion) {
  try {
    find_format("perfeto", "--format");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.parts().file, "--format");
    EXPECT_NE(std::string(error.what()).find("did you mean \"perfetto\""), std::string::npos)
        << error.what();
  }
}

TEST_F(Writers, AFailedWriteLeavesWhatWasThere) {
  const std::string target = path("a.json");
  std::ofstream(target) << "mine";
  const Format failing{"failing", ".json", "", [](const Timeline&, std::ostream& out) {
                         out << "half";
                         throw std::runtime_error("no more");
                       }};
  EXPECT_THROW(write_timeline(tiny_layer(), target, failing), std::runtime_error);
  EXPECT_EQ(read_whole(target), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(Writers, AFullDiskIsAnError) {
  if (!fs::exists("/dev/full")) {
    GTEST_SKIP() << "/dev/full is not there";
  }
  EXPECT_THROW(write_timeline(tiny_layer(), "/dev/full", find_format("chrome")), InputError);
}

TEST_F(Writers, PlacesThatCannotBeWrittenAreRefused) {
  for (const std::string& target : {std::string(), folder_.string(), path("no/such/a.json")}) {
    EXPECT_THROW(write_timeline(tiny_layer(), target, find_format("chrome")), InputError) << target;
  }
}

TEST_F(Writers, AWriterReplacesTheTargetOfALinkAndKeepsTheLink) {
  std::ofstream(path("real.json")) << "old";
  fs::create_symlink(path("real.json"), path("link.json"));
  write_timeline(tiny_layer(), path("link.json"), find_format("chrome"));
  EXPECT_TRUE(fs::is_symlink(path("link.json")));
  EXPECT_EQ(read_whole(path("real.json")).front(), '{');
}

}  // namespace
}  // namespace fusescope::timeline

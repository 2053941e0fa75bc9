#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "reports/report.hpp"
#include "synthetic.hpp"

namespace fusescope::reports {
namespace {

namespace fs = std::filesystem;

class WriteReport : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::path(testing::TempDir()) / "fusescope-reports-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  static std::string read(const fs::path& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  fs::path folder_;
};

TEST_F(WriteReport, LeavesWholeFilesAndReplacesItsOwn) {
  const fs::path out = folder_ / "new" / "report";
  const ReportFiles first = write_report(synthetic_input(), out.string());
  EXPECT_TRUE(fs::exists(out / "report.html"));
  EXPECT_TRUE(fs::exists(out / "report.md"));
  const ReportFiles second = write_report(synthetic_input(), out.string());
  EXPECT_EQ(first.paths, second.paths);
  for (const auto& entry : fs::directory_iterator(out)) {
    EXPECT_NE(entry.path().extension(), ".part");
  }
}

TEST_F(WriteReport, NeverReplacesAFileThatIsNotItsOwn) {
  std::ofstream(folder_ / "report.md") << "my notes on fusescope";
  try {
    write_report(synthetic_input(), folder_.string());
    FAIL() << "no exception";
  } catch (const InputError& error) {
    EXPECT_EQ(error.parts().file, (folder_ / "report.md").string());
  }
  EXPECT_EQ(read(folder_ / "report.md"), "my notes on fusescope");
  EXPECT_FALSE(fs::exists(folder_ / "report.html"));
}

TEST_F(WriteReport, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_ / "file") << "x";
  const std::string place = (folder_ / "file" / "below").string();
  try {
    write_report(synthetic_input(), place);
    FAIL() << "no exception";
  } catch (const InputError& error) {
    EXPECT_EQ(error.parts().file, place);
  }
}

TEST_F(WriteReport, SameInputSameBytes) {
  EXPECT_EQ(render_html(synthetic_input()), render_html(synthetic_input()));
}

}  // namespace
}  // namespace fusescope::reports

#include "base/file_bytes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.hpp"

namespace fusescope {
namespace {

class FileBytes : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("file_bytes_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::string packed(const std::string& bytes) const {
    const std::string path = (folder_ / "packed.gz").string();
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    std::ifstream in(path, std::ios::binary);
    std::string result((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    in.close();
    std::filesystem::remove(path);
    return result;
  }

  static std::string message(const std::string& path) {
    try {
      read_file_bytes(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was refused";
  }

  // Does not compress to nothing, and is longer than one inflated chunk.
  static std::string long_text() {
    std::string text;
    for (unsigned i = 0; text.size() < 3'000'000; ++i) {
      text += std::to_string(i * 2654435761u) + "\n";
    }
    return text;
  }

  std::filesystem::path folder_;
};

TEST_F(FileBytes, ReadsPlainFilesAsTheyAre) {
  const std::string bytes("a\0b\r\n", 5);
  EXPECT_EQ(read_file_bytes(write("plain", bytes)), bytes);
  EXPECT_EQ(read_file_bytes(write("empty", "")), "");
}

TEST_F(FileBytes, InflatesGzipWhateverItsName) {
  const std::string text = long_text();
  EXPECT_EQ(read_file_bytes(write("text", packed(text))), text);
}

TEST_F(FileBytes, InflatesAllMembers) {
  EXPECT_EQ(read_file_bytes(write("two.gz", packed("one\n") + packed("two\n"))), "one\ntwo\n");
}

TEST_F(FileBytes, RefusesTruncatedGzip) {
  const std::string whole = packed(long_text());
  for (const std::size_t kept : {whole.size() - 1, whole.size() / 2, std::size_t{20}}) {
    const std::string path = write("cut.gz", whole.substr(0, kept));
    EXPECT_NE(message(path).find(path), std::string::npos);
    EXPECT_NE(message(path).find("truncated"), std::string::npos) << message(path);
  }
}

TEST_F(FileBytes, RefusesCorruptGzip) {
  std::string whole = packed(long_text());
  whole[whole.size() / 2] = static_cast<char>(~whole[whole.size() / 2]);
  EXPECT_NE(message(write("bad.gz", whole)).find("corrupt"), std::string::npos);
}

TEST_F(FileBytes, RefusesWhatIsNoFile) {
  EXPECT_NE(message((folder_ / "absent").string()).find("No such file"), std::string::npos);
  EXPECT_NE(message(folder_.string()).find("is a folder"), std::string::npos);
}

}  // namespace
}  // namespace fusescope

// Stored timelines: lossless, compact, and no bytes whatever crash the reader or pass for another
// timeline.

#include "timeline/store.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "base/error.hpp"
#include "timeline/gzip.hpp"
#include "tiny_layer.hpp"

namespace fusescope::timeline {
namespace {

namespace fs = std::filesystem;

std::string read_whole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// A folder that is empty at the start and gone at the end.
class Store : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("fusescope_store_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

// What decoding says, or "" if it went through.
std::string refusal(const std::string& bytes) {
  try {
    decode_timeline(bytes, "x.fst");
    return "";
  } catch (const InputError& error) {
    EXPECT_EQ(error.parts().file, "x.fst");
    EXPECT_FALSE(error.parts().place.empty());
    return error.what();
  }
}

TEST_F(Store, ReturnsWhatWasSaved) {
  Timeline timeline = tiny_layer();
  timeline.meta.provenance = Provenance::measured;
  timeline.meta.clock_bound_ns = 0.1 + 0.2;
  timeline.meta.dropped = 1234567890123;
  timeline.meta.clocks = "clocks of 2 devices";
  timeline.meta.unrecorded_us = 812.25;
  timeline.meta.recorded_us = 1.0 / 3;
  timeline.meta.dispatch_clock_mhz = 1755.5;
  timeline.meta.combine_clock_mhz = 1980;
  timeline.meta.command = "fusescope run \"x\"\n\t\\ \xc3\xa9";
  timeline.counters[0].value[1] = -1e-300;
  save_timeline(timeline, path("a.fst"));
  EXPECT_EQ(load_timeline(path("a.fst")), timeline);
  EXPECT_EQ(files(), 1u);
}

TEST_F(Store, ReturnsWhichRowBlocksAreOneTile) {
  const Timeline timeline = tiny_layer({.merged = true});
  ASSERT_FALSE(timeline.wiring.tile_of_row_block.empty());
  EXPECT_EQ(decode_timeline(encode_timeline(timeline), "x.fst"), timeline);
}

TEST_F(Store, KeepsEveryValueThatATypeCanHold) {
  Timeline timeline;
  timeline.wiring.ranks = 2;
  timeline.begin_ns = INT64_MIN;
  timeline.end_ns = INT64_MAX;
  timeline.tracks = {{.rank = 1, .device = INT32_MAX, .block = INT32_MIN, .lane = INT32_MAX}};
  timeline.events = {{.begin_ns = INT64_MIN,
                      .end_ns = INT64_MAX,
                      .token = INT32_MIN,
                      .row_block = INT32_MAX,
                      .index = INT32_MIN,
                      .peer = INT16_MAX,
                      .kind = Kind::reduce},
                     {.begin_ns = INT64_MAX, .end_ns = INT64_MIN, .peer = INT16_MIN}};
  timeline.counters = {{"nothing", "", 0, {}, {}},
                       {"\"\n", "GB/s", 1, {INT64_MIN, INT64_MAX}, {INFINITY, 5e-324}}};
  EXPECT_EQ(decode_timeline(encode_timeline(timeline), ""), timeline);
  EXPECT_EQ(decode_timeline(encode_timeline(Timeline{}), ""), Timeline{});
}

// Every duration and gap as irregular as hardware's.
void jitter(Timeline& timeline) {
  std::mt19937 random(1);
  std::int64_t shift = 0;
  for (std::size_t i = 0; i < timeline.events.size(); ++i) {
    Event& event = timeline.events[i];
    shift = i > 0 && event.track == timeline.events[i - 1].track ? shift : 0;
    shift += static_cast<std::int64_t>(random() % 1000);
    event.begin_ns += shift;
    shift += static_cast<std::int64_t>(random() % 1000);
    event.end_ns += shift;
  }
}

TEST_F(Store, ALayerOfTheSeedsSizeIsSmall) {
  Timeline timeline = tiny_layer(seed_sized());
  jitter(timeline);
  ASSERT_GT(timeline.events.size(), 80000u);
  const std::string bytes = encode_timeline(timeline);
  RecordProperty("bytes", std::to_string(bytes.size()));
  EXPECT_LT(bytes.size(), 1'500'000u);
  EXPECT_EQ(decode_timeline(bytes, ""), timeline);
}

TEST_F(Store, TheFirstLinesAreReadable) {
  const std::string content = gunzip(encode_timeline(tiny_layer()), "");
  EXPECT_EQ(content.substr(0, content.find('\n')), "fusescope timeline 1");
  EXPECT_NE(content.find("\"device\":\"sketch\""), std::string::npos);
}

TEST_F(Store, EveryTruncationIsRefused) {
  const std::string bytes = encode_timeline(tiny_layer());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(refusal(bytes.substr(0, size)), "") << size;
  }
}

TEST_F(Store, EveryFlippedBitIsRefusedOrHarmless) {
  const Timeline timeline = tiny_layer();
  const std::string bytes = encode_timeline(timeline);
  int refused = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      ASSERT_EQ(decode_timeline(flipped, "x.fst"), timeline) << bit;
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(bytes.size()) * 7);
}

// Damage that gzip's checksum does not see, as of a file written by a broken program.
TEST_F(Store, DamagedContentIsRefusedOrReadWithoutHarm) {
  const std::string content = gunzip(encode_timeline(tiny_layer()), "");
  std::mt19937 random(1);
  int refused = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::string damaged = content;
    for (unsigned i = 0; i <= random() % 4; ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) {
      damaged.resize(random() % damaged.size());
    }
    try {
      const Timeline read = decode_timeline(gzip(damaged), "x.fst");
      check(read);
    } catch (const InputError& error) {
      EXPECT_EQ(error.parts().file, "x.fst");
      ++refused;
    }
  }
  EXPECT_GT(refused, kTrials / 2);
}

TEST_F(Store, SaysWhatIsWrong) {
  const std::string bytes = encode_timeline(tiny_layer());
  const std::string content = gunzip(bytes, "");
  EXPECT_NE(refusal("").find("is empty"), std::string::npos);
  EXPECT_NE(refusal("{\"traceEvents\": []}").find("is not a timeline"), std::string::npos);
  EXPECT_NE(refusal(gzip("hello")).find("not of a timeline"), std::string::npos);
  EXPECT_NE(refusal(bytes + "x").find("1 bytes after the end"), std::string::npos);
  EXPECT_NE(refusal(bytes.substr(0, bytes.size() / 2)).find("is truncated"), std::string::npos);
  EXPECT_NE(refusal(gzip(content + "x")).find("1 bytes follow the last column"), std::string::npos);
  std::string newer = content;
  newer[std::string("fusescope timeline ").size()] = '2';
  EXPECT_NE(refusal(gzip(newer)).find("format version 2; accepted: version 1"), std::string::npos);
  std::string many = content;  // tables of that many watermarks would take gigabytes
  many.replace(many.find("\"ranks\":2"), 9, "\"ranks\":64");
  many.replace(many.find("\"watermark_chunks\":1"), 20, "\"watermark_chunks\":65536");
  EXPECT_NE(refusal(gzip(many)).find("are beyond any layer"), std::string::npos);
  std::string unknown = content;
  unknown.replace(unknown.find("gate_wait"), 9, "gate_WAIT");
  EXPECT_NE(refusal(gzip(unknown)).find("/kinds/18: \"gate_WAIT\""), std::string::npos);
}

TEST_F(Store, KindsAreReadByNameNotByNumber) {
  const Timeline timeline = tiny_layer();
  std::string content = gunzip(encode_timeline(timeline), "");
  const std::size_t at = content.find("\"mainloop\",\"epilogue\"");
  ASSERT_NE(at, std::string::npos);
  content.replace(at, 21, "\"epilogue\",\"mainloop\"");
  const Timeline read = decode_timeline(gzip(content), "");
  for (std::size_t i = 0; i < timeline.events.size(); ++i) {
    const Kind kind = timeline.events[i].kind;
    const Kind expected = kind == Kind::epilogue   ? Kind::mainloop
                          : kind == Kind::mainloop ? Kind::epilogue
                                                   : kind;
    ASSERT_EQ(read.events[i].kind, expected);
  }
}

TEST_F(Store, WhatWasThereStaysWhenWritingFails) {
  const std::string target = path("a.fst");
  save_timeline(tiny_layer(), target);
  const std::string before = read_whole(target);
  Timeline bad = tiny_layer();
  bad.meta.clock_bound_ns = NAN;
  EXPECT_THROW(save_timeline(bad, target), InputError);
  EXPECT_EQ(read_whole(target), before);
  EXPECT_EQ(files(), 1u);
  EXPECT_THROW(save_timeline(tiny_layer(), path("no/such/folder/a.fst")), InputError);
  EXPECT_THROW(save_timeline(tiny_layer(), folder_.string()), InputError);
  EXPECT_EQ(files(), 1u);
}

TEST_F(Store, MissingFilesAndFoldersAreRefused) {
  EXPECT_THROW(load_timeline(path("none.fst")), InputError);
  EXPECT_THROW(load_timeline(folder_.string()), InputError);
}

}  // namespace
}  // namespace fusescope::timeline

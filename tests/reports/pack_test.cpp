// The packed timeline, read back by a decoder written from the header's description.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/page_data.hpp"
#include "synthetic.hpp"

namespace fusescope::reports {
namespace {

std::string unbase64(const std::string& text) {
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned held = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') {
      break;
    }
    held = held << 6 | static_cast<unsigned>(alphabet.find(c));
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out += static_cast<char>(held >> bits & 255U);
    }
  }
  return out;
}

class Column {
 public:
  Column(const nlohmann::json& head, const std::string& bytes, const char* name)
      : bytes_(bytes),
        at_(head["columns"][name][0].get<std::size_t>()),
        end_(at_ + head["columns"][name][1].get<std::size_t>()) {}
  std::int64_t next() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.at(at_++));
      value |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) {
        return static_cast<std::int64_t>(value);
      }
    }
  }
  std::int64_t next_signed() {
    const auto value = static_cast<std::uint64_t>(next());
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  bool at_end() const { return at_ == end_; }

 private:
  const std::string& bytes_;
  std::size_t at_;
  std::size_t end_;
};

TEST(Pack, EveryEventComesBack) {
  const ReportInput input = synthetic_input();
  const timeline::Timeline& timeline = input.chosen->timeline;
  const PackedTimeline packed = pack(*input.chosen);
  const auto head = nlohmann::json::parse(packed.head);
  const std::string bytes = unbase64(packed.bytes);
  Column begin(head, bytes, "begin"), duration(head, bytes, "duration"), kind(head, bytes, "kind");
  Column token(head, bytes, "token"), row_block(head, bytes, "row_block"),
      index(head, bytes, "index");
  Column peer(head, bytes, "peer");
  std::size_t i = 0;
  for (std::size_t t = 0; t < timeline.tracks.size(); ++t) {
    std::int64_t at = timeline.begin_ns;
    std::int64_t last_token = -1;
    std::int64_t last_row_block = -1;
    std::int64_t last_index = -1;
    for (auto left = head["tracks"][t][5].get<std::size_t>(); left > 0; --left, ++i) {
      const timeline::Event& event = timeline.events[i];
      at += begin.next_signed();
      EXPECT_EQ(event.track, t);
      EXPECT_EQ(at, event.begin_ns);
      EXPECT_EQ(at + duration.next(), event.end_ns);
      EXPECT_EQ(kind.next(), static_cast<std::int64_t>(event.kind));
      EXPECT_EQ(last_token += token.next_signed(), event.token);
      EXPECT_EQ(last_row_block += row_block.next_signed(), event.row_block);
      EXPECT_EQ(last_index += index.next_signed(), event.index);
      EXPECT_EQ(peer.next() - 1, event.peer);
    }
  }
  EXPECT_EQ(i, timeline.events.size());
  EXPECT_TRUE(begin.at_end() && duration.at_end() && kind.at_end() && token.at_end() &&
              peer.at_end());
}

TEST(Pack, EveryGateWaitHasItsBlame) {
  const ReportInput input = synthetic_input();
  const PackedTimeline packed = pack(*input.chosen);
  const auto head = nlohmann::json::parse(packed.head);
  const std::string bytes = unbase64(packed.bytes);
  Column token(head, bytes, "gate_token"), source(head, bytes, "gate_source"),
      blame(head, bytes, "gate_blame");
  std::size_t known = 0;
  while (!blame.at_end()) {
    const std::int64_t last = token.next() - 1;
    const std::int64_t from = source.next() - 1;
    if (blame.next() > 0 && last >= 0) {
      EXPECT_EQ(from, last / input.chosen->timeline.wiring.tokens_per_rank);
      ++known;
    }
  }
  EXPECT_EQ(known, input.chosen->attribution.accounting.gates.size());
}

TEST(Pack, ThePathSumsToTheWallAndNamesSortedEvents) {
  ReportInput input = synthetic_input();
  const auto sorted = nlohmann::json::parse(pack(*input.chosen).head);
  const PackedTimeline packed = pack(*input.chosen);
  const std::string bytes = unbase64(packed.bytes);
  Column duration(sorted, bytes, "path_duration"), event(sorted, bytes, "path_event");
  std::int64_t sum = 0;
  for (const analysis::Segment& segment : input.chosen->attribution.path.segments) {
    sum += duration.next();
    EXPECT_EQ(event.next(),
              segment.event == UINT32_MAX ? 0 : static_cast<std::int64_t>(segment.event) + 1);
  }
  EXPECT_EQ(sum, input.chosen->timeline.wall_ns());
}

}  // namespace
}  // namespace fusescope::reports

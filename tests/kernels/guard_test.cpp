// A diagnosis in words: rank, block, what, expected and seen are all there.
#include "kernels/guard.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fusescope::kernels {
namespace {

Diagnosis diagnosis(Wait what, int index) {
  Diagnosis d;
  d.valid = 1;
  d.rank = 1;
  d.block = 117;
  d.what = what;
  d.index = index;
  d.expected = 128;
  d.seen = 127;
  d.waited_ns = 2'000'400'000;
  return d;
}

TEST(Diagnosis, NamesEverything) {
  EXPECT_EQ(to_string(diagnosis(Wait::gate, 31)),
            "rank 1 block 117: waited 2000.4 ms for row block 31 to be filled (arrival counter): "
            "expected 128, seen 127");
}

TEST(Diagnosis, TellsTheWaitsApart) {
  std::vector<std::string> texts;
  for (const Wait what : {Wait::ids, Wait::barrier, Wait::start, Wait::pull, Wait::gate,
                          Wait::ready, Wait::residency, Wait::watermark, Wait::clock}) {
    const std::string text = to_string(diagnosis(what, 5));
    EXPECT_NE(text.find("5"), std::string::npos);
    for (const std::string& other : texts) {
      EXPECT_NE(text, other);
    }
    texts.push_back(text);
  }
}

}  // namespace
}  // namespace fusescope::kernels

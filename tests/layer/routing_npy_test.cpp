#include <zlib.h>

#include <cmath>
#include <cstring>

#include "layer_test_support.hpp"

namespace fusescope {
namespace {

using test::contains;
using test::refusal;

template <typename Type>
std::string bytes_of(const std::vector<Type>& values) {
  std::string bytes(values.size() * sizeof(Type), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// As numpy.save writes it.
std::string npy(const std::string& type, const std::string& shape, const std::string& data,
                int version = 1, const char* fortran = "False") {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  const std::size_t prefix = version == 1 ? 10 : 12;
  header.append(63 - (prefix + header.size()) % 64, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (std::size_t i = 0; i < prefix - 8; ++i) {
    file += static_cast<char>(header.size() >> (8 * i));
  }
  return file + header + data;
}

class NpyRouting : public test::FolderTest {
 protected:
  static Shape shape() { return test::small_shape(2, 2, 8, 2); }  // 4 tokens, top-2

  Routing read(const std::string& bytes, const std::string& options = "") const {
    const std::string path = write("ids.npy", bytes);
    return make_routing(parse_routing("file:" + path + options), shape());
  }
  InputError::Parts refused(const std::string& bytes, const std::string& options = "") const {
    return refusal([&] { read(bytes, options); });
  }
};

const std::vector<std::int32_t> kIds = {0, 1, 2, 3, 4, 5, 6, 7};

TEST_F(NpyRouting, ReadsEveryIntegerWidthAndHeaderVersion) {
  for (const int version : {1, 2, 3}) {
    EXPECT_EQ(read(npy("<i4", "(4, 2)", bytes_of(kIds), version)).experts, kIds);
  }
  EXPECT_EQ(read(npy("<i2", "(4, 2)", bytes_of<std::int16_t>({0, 1, 2, 3, 4, 5, 6, 7}))).experts,
            kIds);
  EXPECT_EQ(read(npy("<i8", "(4, 2)", bytes_of<std::int64_t>({0, 1, 2, 3, 4, 5, 6, 7}))).experts,
            kIds);
}

TEST_F(NpyRouting, WithoutWeightsTheyAreEqualAndSaid) {
  const Routing routing = read(npy("<i4", "(4, 2)", bytes_of(kIds)));
  EXPECT_EQ(routing.weights, std::vector<float>(8, 0.5f));
  EXPECT_TRUE(contains(routing.description, "equal weights")) << routing.description;
}

TEST_F(NpyRouting, PicksALayerOfThree) {
  // [2 tokens, 3 layers, K = 2]
  const std::string file =
      npy("<i2", "(2, 3, 2)", bytes_of<std::int16_t>({0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(read(file, "#layer=1").experts, (std::vector<std::int32_t>{2, 3, 3, 2, 2, 3, 3, 2}));
  EXPECT_TRUE(contains(read(file, "#layer=1").description, "layer 1 of 3"));
  EXPECT_TRUE(contains(refused(file, "#layer=3").accepted, "layer 0 to 2"));
}

TEST_F(NpyRouting, TilesSkipsAndCutsAndSaysSo) {
  const std::string three = npy("<i4", "(3, 2)", bytes_of<std::int32_t>({0, 1, 2, 3, 4, 5}));
  const Routing tiled = read(three);
  EXPECT_EQ(tiled.experts, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 0, 1}));
  EXPECT_TRUE(contains(tiled.description, "3 tokens, tiled 1.33 times to 4")) << tiled.description;
  const Routing skipped = read(three, "#skip=2");
  EXPECT_EQ(skipped.experts, (std::vector<std::int32_t>{4, 5, 4, 5, 4, 5, 4, 5}));
  EXPECT_TRUE(contains(skipped.description, "1 tokens after 2 skipped"));
  EXPECT_TRUE(contains(refused(three, "#skip=3").problem, "leaves none"));
  const Routing cut =
      read(npy("<i4", "(5, 2)", bytes_of<std::int32_t>({0, 1, 2, 3, 4, 5, 6, 7, 1, 0})));
  EXPECT_EQ(cut.experts, kIds);
  EXPECT_TRUE(contains(cut.description, "cut to the first 4")) << cut.description;
}

TEST_F(NpyRouting, ReadsGzip) {
  const std::string path = (folder_ / "ids.npy.gz").string();
  const std::string bytes = npy("<i4", "(4, 2)", bytes_of(kIds));
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  EXPECT_EQ(make_routing(parse_routing("file:" + path), shape()).experts, kIds);
}

TEST_F(NpyRouting, TakesWeightsFromASecondFile) {
  const std::vector<float> weights = {0.75f, 0.25f, 0.5f, 0.5f, 1, 0, 2, 3};
  const std::string ids = npy("<i4", "(4, 2)", bytes_of(kIds));
  const std::string path = write("w.npy", npy("<f4", "(4, 2)", bytes_of(weights)));
  EXPECT_EQ(read(ids, "#weights=" + path).weights, weights);
  const std::vector<double> wide(weights.begin(), weights.end());
  const std::string wide_path = write("w8.npy", npy("<f8", "(4, 2)", bytes_of(wide)));
  EXPECT_EQ(read(ids, "#weights=" + wide_path).weights, weights);

  const std::string other = write("o.npy", npy("<f4", "(2, 4)", bytes_of(weights)));
  EXPECT_TRUE(contains(refused(ids, "#weights=" + other).problem, "[2, 4]"));
  EXPECT_TRUE(contains(refused(ids, "#weights=" + write("i.npy", ids)).problem, "'<i4'"));
}

TEST_F(NpyRouting, RefusesBadValuesWithRowAndValue) {
  const auto spoilt = [&](std::size_t index, std::int32_t value) {
    std::vector<std::int32_t> ids = kIds;
    ids[index] = value;
    return refused(npy("<i4", "(4, 2)", bytes_of(ids)));
  };
  const auto beyond = spoilt(5, 8);
  EXPECT_TRUE(contains(beyond.file, "ids.npy"));
  EXPECT_EQ(beyond.place, "row 2");
  EXPECT_TRUE(contains(beyond.problem, "expert id 8"));
  EXPECT_TRUE(contains(beyond.accepted, "0 to 7"));
  EXPECT_TRUE(contains(spoilt(0, -1).problem, "expert id -1"));
  EXPECT_EQ(spoilt(7, 6).place, "row 3");
  EXPECT_TRUE(contains(spoilt(7, 6).problem, "id 6 occurs twice"));
  const auto huge = refused(npy("<i8", "(1, 2)", bytes_of<std::int64_t>({0, 9'000'000'000'000})));
  EXPECT_EQ(huge.place, "row 0");
  EXPECT_TRUE(contains(huge.problem, "9000000000000"));

  const std::string ids = npy("<i4", "(4, 2)", bytes_of(kIds));
  for (const float bad : {std::nanf(""), -0.5f, INFINITY}) {
    const std::string path =
        write("w.npy", npy("<f4", "(4, 2)", bytes_of<float>({1, 1, 1, bad, 1, 1, 1, 1})));
    EXPECT_EQ(refused(ids, "#weights=" + path).place, "row 1");
  }
}

TEST_F(NpyRouting, RefusesAnotherK) {
  const auto parts = refused(npy("<i4", "(2, 4)", bytes_of(kIds)));
  EXPECT_TRUE(contains(parts.problem, "top-4")) << parts.problem;
  EXPECT_TRUE(contains(parts.problem, "top-2")) << parts.problem;
}

TEST_F(NpyRouting, RefusesTruncationAtEveryLength) {
  const std::string whole = npy("<i4", "(4, 2)", bytes_of(kIds));
  EXPECT_TRUE(contains(refused(whole.substr(0, whole.size() - 1)).problem, "truncated"));
  for (std::size_t kept = 0; kept < whole.size(); ++kept) {
    refused(whole.substr(0, kept));
  }
  EXPECT_TRUE(contains(refused("").problem, "empty"));
  EXPECT_TRUE(contains(refused(whole + "x").problem, "1 bytes too many"));
}

TEST_F(NpyRouting, RefusesFormsThatAreNotRouting) {
  const std::string data = bytes_of(kIds);
  EXPECT_TRUE(contains(refused(npy(">i4", "(4, 2)", data)).problem, "'>i4'"));
  EXPECT_TRUE(contains(refused(npy("<f4", "(4, 2)", data)).accepted, "<i2, <i4 or <i8"));
  EXPECT_TRUE(contains(refused(npy("<i4", "(4, 2)", data, 1, "True")).problem, "Fortran"));
  EXPECT_TRUE(contains(refused(npy("<i4", "(8,)", data)).problem, "[8]"));
  EXPECT_TRUE(contains(refused(npy("<i4", "(1, 2, 2, 2)", data)).problem, "[1, 2, 2, 2]"));
  EXPECT_TRUE(contains(refused(npy("<i4", "(0, 2)", "")).problem, "no tokens"));
  EXPECT_TRUE(contains(refused(npy("<i4", "(4, 2)", data, 9)).problem, "version 9"));
  EXPECT_TRUE(contains(refused(npy("<i4", "(4611686018427387904, 2)", data)).problem, "truncated"));
  EXPECT_TRUE(contains(refused(npy("<i4", "(-4, 2)", data)).problem, "'shape'"));
  EXPECT_TRUE(contains(refusal([&] {
                         make_routing(parse_routing("file:" + (folder_ / "absent.npy").string()),
                                      shape());
                       }).problem,
                       "No such file"));
}

}  // namespace
}  // namespace fusescope

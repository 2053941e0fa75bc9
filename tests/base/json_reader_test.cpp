#include "base/json_reader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.hpp"

namespace fusescope {
namespace {

InputError::Parts refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.parts();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

std::string temporary_file() {
  return testing::TempDir() + "json_reader_test_" + std::to_string(::getpid()) + ".json";
}

const Json kDocument = Json::parse(R"({"axes": {"sms": [4, 8.5], "on": true}, "name": "quick"})");

TEST(JsonReader, ReadsEachType) {
  const JsonReader reader("f.json", kDocument);
  EXPECT_EQ(reader.at("name").as_string(), "quick");
  EXPECT_TRUE(reader.at("axes").at("on").as_bool());
  EXPECT_EQ(reader.at("axes").at("sms").element(0).as_integer(0, 10), 4);
  EXPECT_EQ(reader.at("axes").at("sms").element(1).as_number(), 8.5);
  EXPECT_EQ(reader.at("name").as_choice({"slow", "quick"}), 1u);
  EXPECT_TRUE(reader.has("axes"));
  EXPECT_FALSE(reader.has("axis"));
}

TEST(JsonReader, NamesFileAndPathOfWhatIsWrong) {
  const JsonReader reader("f.json", kDocument);
  const auto parts = refusal([&] { reader.at("axes").at("sms").element(1).as_integer(0, 10); });
  EXPECT_EQ(parts.file, "f.json");
  EXPECT_EQ(parts.place, "/axes/sms/1");
  EXPECT_NE(parts.problem.find("8.5"), std::string::npos);
}

TEST(JsonReader, RefusesOutOfRangeMissingAndWrongType) {
  const JsonReader reader("f.json", kDocument);
  EXPECT_THROW(reader.at("axes").at("sms").element(0).as_integer(5, 10), InputError);
  EXPECT_THROW(reader.at("axes").at("sms").element(0).as_number(0, 3), InputError);
  EXPECT_THROW(reader.at("absent"), InputError);
  EXPECT_THROW(reader.at("name").as_bool(), InputError);
  EXPECT_THROW(reader.at("name").size(), InputError);
  EXPECT_THROW(reader.at("name").keys(), InputError);
  EXPECT_THROW(reader.at("name").as_choice({"slow", "fast"}), InputError);
}

TEST(JsonReader, SuggestsForAnUnknownKey) {
  const JsonReader reader("f.json", kDocument);
  EXPECT_NO_THROW(reader.only({"axes", "name"}));
  const auto parts = refusal([&] { reader.only({"axis", "name"}); });
  EXPECT_EQ(parts.place, "/axes");
  EXPECT_NE(parts.problem.find("did you mean \"axis\""), std::string::npos);
}

TEST(JsonReader, FileErrorsNameLineAndColumn) {
  const std::string path = temporary_file();
  std::ofstream(path) << "{\n  \"a\": 1,\n  \"b\" 2\n}\n";
  const auto parts = refusal([&] { read_json_file(path); });
  EXPECT_EQ(parts.file, path);
  EXPECT_EQ(parts.place.substr(0, 6), "line 3");
  EXPECT_THROW(read_json_file(path + ".absent"), InputError);
  std::filesystem::remove(path);
}

TEST(JsonReader, FilesThatAreNoPlainDocumentAreRefusedInWords) {
  const std::string path = temporary_file();
  const auto refused = [&](const std::string& text) {
    std::ofstream(path) << text;
    return refusal([&] { read_json_file(path); }).problem;
  };
  EXPECT_EQ(refused(R"({"a": 1e999})"), "holds a number that is out of range");
  EXPECT_EQ(refused(std::string(1'000'000, '[')), "nests deeper than 100 levels");
  EXPECT_EQ(refused(""), "is not valid JSON");
  EXPECT_EQ(refusal([&] { read_json_file(testing::TempDir()); }).problem, "is a folder");
  std::filesystem::remove(path);
}

TEST(JsonReader, ParsesBracketsInStringsAtAnyNumber) {
  EXPECT_TRUE(parse_json("[\"" + std::string(1000, '[') + "\\\"[\"]").has_value());
  EXPECT_TRUE(parse_json(std::string(100, '[') + std::string(100, ']')).has_value());
  EXPECT_FALSE(parse_json(std::string(101, '[') + std::string(101, ']')).has_value());
  EXPECT_FALSE(parse_json("[1,").has_value());
  EXPECT_FALSE(parse_json("[1e999]").has_value());
}

TEST(InputError, ReadsAsASentence) {
  EXPECT_STREQ(InputError({"f", "row 3", "bad", "good"}).what(), "f: row 3: bad; accepted: good");
  EXPECT_STREQ(InputError({"", "", "bad", ""}).what(), "bad");
}

}  // namespace
}  // namespace fusescope

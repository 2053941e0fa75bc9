// The reader of Nsight Systems exports: schemas by column presence, tables that are not there, damage.

#include <sqlite3.h>

#include <fstream>

#include "base/error.hpp"
#include "traces.hpp"

namespace fusescope::timeline::test {
namespace {

class Nsys : public testing::Test {
 protected:
  Nsys() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "fusescope-nsys-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Nsys() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return (folder_ / "a?b#c%d.sqlite").string(); }

  std::string database(const std::string& statements) const {
    std::filesystem::remove(path());
    sqlite3* handle = nullptr;
    EXPECT_EQ(sqlite3_open(path().c_str(), &handle), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(handle, statements.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << message;
    sqlite3_close(handle);
    return path();
  }

  std::filesystem::path folder_;
};

constexpr const char* kStrings =
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES(1,'ncclDevKernel_AllReduce(x)'),(2,'ncclDevKernel_AllReduce'),"
    "(3,'cudaLaunchKernel'),(4,'registered range');";

TEST_F(Nsys, SeveralProcessesAndDevicesInAnyOrder) {
  // Process 5 in bits 24 to 47.
  const Trace trace = read_trace(database(
      std::string(kStrings) +
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT,"
      " correlationId INT, globalPid INT, demangledName INT, shortName INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(300,400,1,7,2,100663296,1,2),"
      "(100,250,0,7,1,83886080,1,2);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT, end INT, deviceId INT, streamId INT,"
      " correlationId INT, globalPid INT, bytes INT, copyKind INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(10,20,0,8,3,83886080,4096,10);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT,"
      " correlationId INT, nameId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(1,5,83886083,1,3);"
      "CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, textId INT,"
      " globalTid INT);"
      "INSERT INTO NVTX_EVENTS VALUES(0,9,59,NULL,4,83886083),(0,9,59,'own text',NULL,83886083),"
      "(3,NULL,34,'a mark',NULL,83886083),(4,NULL,60,'endless',NULL,83886083);"));
  ASSERT_EQ(trace.gpu.size(), 3U);
  EXPECT_EQ(trace.names[trace.gpu[0].name], "Memcpy PtoP");
  EXPECT_EQ(trace.gpu[0].bytes, 4096);
  EXPECT_EQ(trace.names[trace.gpu[1].name], "ncclDevKernel_AllReduce(x)");
  EXPECT_EQ(trace.queues[trace.gpu[1].queue], (Queue{5, 0, 7}));
  EXPECT_EQ(trace.queues[trace.gpu[2].queue], (Queue{6, 1, 7}));
  ASSERT_EQ(trace.host.size(), 3U);
  EXPECT_EQ(trace.threads[trace.host[0].thread].process, 5);
  EXPECT_EQ(trace.threads[trace.host[0].thread].thread, 3);
  EXPECT_TRUE(has_note(trace, "1 NVTX ranges have no end"));
}

TEST_F(Nsys, OldSchemasAndMissingTables) {
  const Trace trace = read_trace(database(
      std::string(kStrings) +
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT,"
      " shortName INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(100,250,0,7,2),(5,1,0,7,2),(1,2,0,7,99);"));
  ASSERT_EQ(trace.gpu.size(), 2U);
  EXPECT_EQ(trace.names[trace.gpu[1].name], "ncclDevKernel_AllReduce");
  EXPECT_EQ(trace.gpu[1].correlation, kNoCorrelation);
  EXPECT_TRUE(has_note(trace, "1 rows without a usable time are lost"));
  EXPECT_TRUE(has_note(trace, "1 rows name strings that the file does not hold"));
}

TEST_F(Nsys, ViewsAndForeignDatabasesAreRefused) {
  EXPECT_THROW(read_trace(database("CREATE TABLE other(x INT);")), InputError);
  EXPECT_THROW(
      read_trace(database(
          "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(x) AS (SELECT 1 UNION "
          "ALL SELECT x + 1 FROM n) SELECT x AS start, x AS end FROM n;")),
      InputError);
}

TEST_F(Nsys, TruncatedAndDamagedFilesAreRefusedWithTheTable) {
  std::string statements = std::string(kStrings) +
                           "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, "
                           "deviceId INT, streamId INT, shortName INT);BEGIN;";
  for (int i = 0; i < 3000; ++i) {
    statements += "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(" + std::to_string(i * 10) + "," +
                  std::to_string(i * 10 + 5) + ",0,7,2);";
  }
  const std::string file = database(statements + "COMMIT;");
  EXPECT_EQ(read_trace(file).gpu.size(), 3000U);
  const auto size = std::filesystem::file_size(file);
  std::filesystem::resize_file(file, size / 2);
  EXPECT_THROW(read_trace(file), InputError);
  std::filesystem::resize_file(file, 50);
  EXPECT_THROW(read_trace(file), InputError);
}

TEST_F(Nsys, TheFileIsNotTouched) {
  const std::string file = database(
      std::string(kStrings) +
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1,2,0,7);");
  const auto before = std::filesystem::last_write_time(file);
  read_trace(file);
  EXPECT_EQ(std::filesystem::last_write_time(file), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Nsys, RealExport) {
  const std::string file = real_trace("nsys-h100-2gpu.sqlite.gz");
  if (file.empty()) {
    GTEST_SKIP() << "nsys-h100-2gpu.sqlite.gz is not here";
  }
  const Trace trace = read_trace(file);
  EXPECT_EQ(trace.source, "Nsight Systems 2026.2.1.210");
  EXPECT_EQ(trace.gpu.size(), 4010U + 1020U + 269U);
  EXPECT_EQ(trace.queues.size(), 2U + 0U) << "streams of both devices";
  EXPECT_TRUE(trace.notes.empty()) << trace.notes.front();
}

}  // namespace
}  // namespace fusescope::timeline::test

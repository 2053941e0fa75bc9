#pragma once
// Reading a foreign SQLite file: opened read-only and never trusted; tables and columns are looked at by
// name, and may be missing.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace fusescope::timeline {

class ByteSource;

class SqliteFile {
 public:
  // Throws InputError: not a database, corrupt, locked.
  explicit SqliteFile(const std::string& path);
  // A compressed file, or bytes in memory: unpacked into memory.
  SqliteFile(ByteSource& source, std::string file);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  bool has_table(const std::string& name);
  std::uint64_t bytes() const { return bytes_; }
  const std::string& file() const { return file_; }
  sqlite3* handle() { return handle_; }

 private:
  void harden();

  std::string file_;
  sqlite3* handle_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// The rows of one plain table, in whatever order they are stored.
class SqliteRows {
 public:
  SqliteRows(SqliteFile& file, const std::string& table);
  ~SqliteRows();
  SqliteRows(const SqliteRows&) = delete;
  SqliteRows& operator=(const SqliteRows&) = delete;

  // -1 if the table has no such column.
  int column(std::string_view name) const;
  // Throws InputError where the file is damaged.
  bool next();
  std::uint64_t row() const { return row_; }  // from 1

  // nullopt: no such column, NULL, or another type.
  std::optional<std::int64_t> integer(int column) const;
  std::optional<std::string_view> text(int column) const;  // valid until next()

 private:
  SqliteFile& file_;
  std::string table_;
  sqlite3_stmt* statement_ = nullptr;
  std::vector<std::string> columns_;
  std::uint64_t row_ = 0;
  std::uint64_t most_rows_;
};

}  // namespace fusescope::timeline

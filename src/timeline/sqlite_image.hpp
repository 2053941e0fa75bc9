#pragma once
// A SQLite database made in memory, and its bytes as a file would hold them.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

struct sqlite3;
struct sqlite3_stmt;

namespace fusescope::timeline {

// NULL, a number, or text that lives until the row is written.
using SqlValue = std::variant<std::monostate, std::int64_t, std::string_view>;

class SqliteImage {
 public:
  // Runs the statements that make the tables. Throws std::runtime_error where SQLite refuses; so do all
  // functions here.
  explicit SqliteImage(const char* tables);
  ~SqliteImage();
  SqliteImage(const SqliteImage&) = delete;
  SqliteImage& operator=(const SqliteImage&) = delete;

  void run(const char* statements);
  std::string bytes();

  // Inserts into some columns of a table; the others are NULL.
  class Rows {
   public:
    Rows(SqliteImage& image, const std::string& table, const std::string& columns);
    ~Rows();
    Rows(const Rows&) = delete;
    Rows& operator=(const Rows&) = delete;
    void add(std::initializer_list<SqlValue> values);

   private:
    SqliteImage& image_;
    sqlite3_stmt* statement_ = nullptr;
  };

 private:
  void insist(int result, int wanted);

  sqlite3* handle_ = nullptr;
};

}  // namespace fusescope::timeline

#include "timeline/sqlite_image.hpp"

#include <sqlite3.h>

#include <memory>
#include <stdexcept>

namespace fusescope::timeline {

SqliteImage::SqliteImage(const char* tables) {
  insist(sqlite3_open_v2(":memory:", &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr),
         SQLITE_OK);
  run(tables);
  run("BEGIN");
}

SqliteImage::~SqliteImage() {
  sqlite3_close(handle_);
}

void SqliteImage::insist(int result, int wanted) {
  if (result != wanted) {
    throw std::runtime_error(std::string("SQLite: ") + sqlite3_errmsg(handle_));
  }
}

void SqliteImage::run(const char* statements) {
  insist(sqlite3_exec(handle_, statements, nullptr, nullptr, nullptr), SQLITE_OK);
}

std::string SqliteImage::bytes() {
  run("COMMIT");
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> image(
      sqlite3_serialize(handle_, "main", &size, 0), sqlite3_free);
  if (!image) {
    throw std::runtime_error("SQLite: no memory for a database of " + std::to_string(size) +
                             " bytes");
  }
  return {reinterpret_cast<const char*>(image.get()), static_cast<std::size_t>(size)};
}

SqliteImage::Rows::Rows(SqliteImage& image, const std::string& table, const std::string& columns)
    : image_(image) {
  std::string marks = "?";
  for (const char letter : columns) {
    marks += letter == ',' ? ", ?" : "";
  }
  const std::string text = "INSERT INTO " + table + " (" + columns + ") VALUES (" + marks + ")";
  image_.insist(sqlite3_prepare_v2(image_.handle_, text.c_str(), -1, &statement_, nullptr),
                SQLITE_OK);
}

SqliteImage::Rows::~Rows() {
  sqlite3_finalize(statement_);
}

void SqliteImage::Rows::add(std::initializer_list<SqlValue> values) {
  int column = 0;
  for (const SqlValue& value : values) {
    ++column;
    int result = SQLITE_OK;
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      result = sqlite3_bind_int64(statement_, column, *number);
    } else if (const auto* text = std::get_if<std::string_view>(&value)) {
      result = sqlite3_bind_text(statement_, column, text->data(), static_cast<int>(text->size()),
                                 SQLITE_STATIC);
    } else {
      result = sqlite3_bind_null(statement_, column);
    }
    image_.insist(result, SQLITE_OK);
  }
  image_.insist(sqlite3_step(statement_), SQLITE_DONE);
  image_.insist(sqlite3_reset(statement_), SQLITE_OK);
}

}  // namespace fusescope::timeline

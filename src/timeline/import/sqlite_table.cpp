#include "timeline/import/sqlite_table.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <new>

#include "base/error.hpp"
#include "timeline/import/byte_source.hpp"

namespace fusescope::timeline {
namespace {

constexpr const char* kAccepted = "a SQLite file as `nsys export --type sqlite` writes it";

// A row of a table takes at least its header and one value; damaged files can claim any number.
constexpr std::uint64_t kLeastRowBytes = 4;

// As a URI's path: '%', '?' and '#' would end it.
std::string uri_of(const std::string& path) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    if (c == '%' || c == '?' || c == '#') {
      const auto byte = static_cast<unsigned char>(c);
      uri += '%';
      uri += kHex[byte >> 4];
      uri += kHex[byte & 15];
    } else {
      uri += c;
    }
  }
  return uri + "?mode=ro&immutable=1";
}

struct FreeSqlite {
  void operator()(unsigned char* bytes) const { sqlite3_free(bytes); }
};

std::string quoted_name(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) {
    out += c;
    if (c == '"') {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

SqliteFile::SqliteFile(const std::string& path) : file_(path) {
  const int status = sqlite3_open_v2(uri_of(path).c_str(), &handle_,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  if (status != SQLITE_OK) {
    const std::string reason = sqlite3_errstr(status);
    sqlite3_close(handle_);
    throw InputError({file_, "", "cannot be opened: " + reason, kAccepted});
  }
  std::error_code error;
  bytes_ = std::filesystem::file_size(path, error);
  harden();
}

SqliteFile::SqliteFile(ByteSource& source, std::string file) : file_(std::move(file)) {
  constexpr std::uint64_t kMost = std::uint64_t{8} << 30;
  std::uint64_t capacity = std::uint64_t{1} << 20;
  std::unique_ptr<unsigned char, FreeSqlite> content(
      static_cast<unsigned char*>(sqlite3_malloc64(capacity)));
  while (content) {
    if (bytes_ == capacity) {
      capacity += capacity / 2;
      if (capacity > kMost) {
        throw InputError({file_, "", "unpacks to more than 8 GiB", "the unpacked file"});
      }
      auto* grown = static_cast<unsigned char*>(sqlite3_realloc64(content.get(), capacity));
      if (grown == nullptr) {
        throw std::bad_alloc();
      }
      static_cast<void>(content.release());
      content.reset(grown);
    }
    const std::size_t got =
        source.read(reinterpret_cast<char*>(content.get()) + bytes_, capacity - bytes_);
    if (got == 0) {
      break;
    }
    bytes_ += got;
  }
  if (!content) {
    throw std::bad_alloc();
  }
  if (!source.damage().empty()) {
    throw InputError({file_, "", source.damage() + "; a SQLite file is read whole or not at all",
                      "the whole file"});
  }
  if (sqlite3_open_v2(":memory:", &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, nullptr) !=
      SQLITE_OK) {
    sqlite3_close(handle_);
    throw std::bad_alloc();
  }
  const auto size = static_cast<sqlite3_int64>(bytes_);
  // The database owns the bytes from here on, even where this fails.
  if (sqlite3_deserialize(handle_, "main", content.release(), size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) !=
      SQLITE_OK) {
    sqlite3_close(handle_);
    throw InputError({file_, "", "is not a SQLite database", kAccepted});
  }
  harden();
}

SqliteFile::~SqliteFile() {
  sqlite3_close(handle_);
}

void SqliteFile::harden() {
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_exec(handle_, "PRAGMA cell_size_check=ON", nullptr, nullptr, nullptr);
}

bool SqliteFile::has_table(const std::string& name) {
  // Plain tables only: views and virtual tables would run what the file says.
  sqlite3_stmt* statement = nullptr;
  const int status = sqlite3_prepare_v2(
      handle_,
      "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 AND rootpage > 0 LIMIT 1", -1,
      &statement, nullptr);
  if (status != SQLITE_OK) {
    throw InputError(
        {file_, "", std::string("cannot be read: ") + sqlite3_errmsg(handle_), kAccepted});
  }
  sqlite3_bind_text(statement, 1, name.c_str(), -1, SQLITE_TRANSIENT);
  const bool found = sqlite3_step(statement) == SQLITE_ROW;
  sqlite3_finalize(statement);
  return found;
}

SqliteRows::SqliteRows(SqliteFile& file, const std::string& table)
    : file_(file), table_(table), most_rows_(file.bytes() / kLeastRowBytes + 1) {
  const std::string query = "SELECT * FROM " + quoted_name(table);
  if (sqlite3_prepare_v2(file.handle(), query.c_str(), -1, &statement_, nullptr) != SQLITE_OK) {
    throw InputError({file.file(), "table " + table,
                      std::string("cannot be read: ") + sqlite3_errmsg(file.handle()), kAccepted});
  }
  for (int i = 0; i < sqlite3_column_count(statement_); ++i) {
    const char* name = sqlite3_column_name(statement_, i);
    columns_.emplace_back(name == nullptr ? "" : name);
  }
}

SqliteRows::~SqliteRows() {
  sqlite3_finalize(statement_);
}

int SqliteRows::column(std::string_view name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  return found == columns_.end() ? -1 : static_cast<int>(found - columns_.begin());
}

bool SqliteRows::next() {
  const int status = sqlite3_step(statement_);
  if (status == SQLITE_ROW && row_ < most_rows_) {
    ++row_;
    return true;
  }
  if (status != SQLITE_DONE) {
    throw InputError({file_.file(), "table " + table_ + ", row " + std::to_string(row_ + 1),
                      status == SQLITE_ROW ? "has more rows than its size allows: it is damaged"
                                           : sqlite3_errmsg(file_.handle()),
                      kAccepted});
  }
  return false;
}

std::optional<std::int64_t> SqliteRows::integer(int column) const {
  if (column < 0 || sqlite3_column_type(statement_, column) != SQLITE_INTEGER) {
    return std::nullopt;
  }
  return sqlite3_column_int64(statement_, column);
}

std::optional<std::string_view> SqliteRows::text(int column) const {
  if (column < 0 || sqlite3_column_type(statement_, column) != SQLITE_TEXT) {
    return std::nullopt;
  }
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) {
    return std::nullopt;
  }
  return std::string_view(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

}  // namespace fusescope::timeline

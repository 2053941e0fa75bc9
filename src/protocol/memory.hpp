#pragma once
// Plain memory: cells that hold one row (or one table, or one word) each, and who may touch them when. A
// cell remembers the epoch of its last write and of the reads since; an access that conflicts with one
// that did not happen before it is a race, and a finding at once, whatever the machine would have read.
//
// The generic and the async proxy are kept apart by the clock that an access is checked against: a thread
// knows what its loads and stores come after, and, separately, what the bulk copies that it starts come
// after. A write that is overwritten, or read, must be known through the proxy of the new access. A read
// that is overwritten may be known through either: a read that has returned is over for both proxies.

#include <cstdint>
#include <functional>
#include <vector>

#include "protocol/clock.hpp"
#include "protocol/finding.hpp"
#include "protocol/names.hpp"

namespace fusescope::protocol {

using CellId = std::int32_t;

inline constexpr std::int32_t kUnwritten = -1;  // stamp of a cell that nobody has written
inline constexpr std::int32_t kAnyStamp = -2;   // a reader that will not use what it reads

// Epochs of accesses to one place since its last write, in nodes of a shared pool.
class AccessPool {
 public:
  void reset() {
    nodes_.clear();
    free_ = -1;
  }
  struct Node {
    Component component;
    Tick tick;
    LabelId who;
    std::int32_t next;
  };
  // Adds the access to the list. `prune`: drops nodes that happened before it.
  void add(std::int32_t& list, Component component, Tick tick, LabelId who, const Clock* prune);
  // The first access of the list that `clock` does not hold; null if there is none.
  const Node* unordered(std::int32_t list, const Clock& clock) const;
  void drop(std::int32_t& list);

 private:
  std::vector<Node> nodes_;
  std::int32_t free_ = -1;
};

struct Access {
  const Clock* before;        // what it comes after, through its own proxy
  const Clock* reads_before;  // the same through either proxy
  Component component;
  Tick tick;
  LabelId who;
  bool async;
};

class Memory {
 public:
  using Report = std::function<void(FindingKind, std::string)>;

  void reset(Report report, const std::vector<Label>* labels);
  // `count` cells named name[...][0], name[...][1], ...; returns the first.
  CellId add(Name name, int count);

  std::uint64_t read(CellId cell, const Access& access, std::int32_t stamp);
  void write(CellId cell, const Access& access, std::uint64_t value, std::int32_t stamp);

  // What a host sees that has waited for everything.
  std::uint64_t peek(CellId cell) const { return cells_[cell].value; }
  std::int32_t stamp(CellId cell) const { return cells_[cell].stamp; }
  // Shared memory of a block that has just started: nothing in it means anything.
  void forget(CellId first, int count);

  std::string name(CellId cell) const;
  AccessPool& accesses() { return accesses_; }
  // After an abort rows are garbage and nobody reads the outputs.
  void stop_checking() { checking_ = false; }
  void start_checking() { checking_ = true; }

 private:
  struct Cell {
    std::uint64_t value;
    std::int32_t stamp;
    std::int32_t readers;
    LabelId who;
    Component writer;
    Tick written;
  };
  struct Range {
    CellId first;
    int count;
    Name name;
  };
  void race(CellId cell, const char* earlier, LabelId who, const char* later, const Access& access);

  std::vector<Cell> cells_;
  std::vector<Range> ranges_;
  AccessPool accesses_;
  Report report_;
  const std::vector<Label>* labels_ = nullptr;
  bool checking_ = true;
};

}  // namespace fusescope::protocol

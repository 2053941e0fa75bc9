#include "protocol/memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fusescope::protocol {

void AccessPool::add(std::int32_t& list, Component component, Tick tick, LabelId who,
                     const Clock* prune) {
  std::int32_t* link = &list;
  while (*link >= 0) {
    Node& node = nodes_[*link];
    if (node.component == component) {
      node.tick = std::max(node.tick, tick);
      node.who = who;
      return;
    }
    if (prune != nullptr && prune->holds(node.component, node.tick)) {
      const std::int32_t dead = *link;
      *link = node.next;
      nodes_[dead].next = free_;
      free_ = dead;
      continue;
    }
    link = &node.next;
  }
  std::int32_t place = free_;
  if (place >= 0) {
    free_ = nodes_[place].next;
    nodes_[place] = {component, tick, who, list};
  } else {
    place = static_cast<std::int32_t>(nodes_.size());
    nodes_.push_back({component, tick, who, list});
  }
  list = place;
}

const AccessPool::Node* AccessPool::unordered(std::int32_t list, const Clock& clock) const {
  for (std::int32_t at = list; at >= 0; at = nodes_[at].next) {
    if (!clock.holds(nodes_[at].component, nodes_[at].tick)) {
      return &nodes_[at];
    }
  }
  return nullptr;
}

void AccessPool::drop(std::int32_t& list) {
  while (list >= 0) {
    const std::int32_t next = nodes_[list].next;
    nodes_[list].next = free_;
    free_ = list;
    list = next;
  }
}

void Memory::reset(Report report, const std::vector<Label>* labels) {
  cells_.clear();
  ranges_.clear();
  accesses_.reset();
  report_ = std::move(report);
  labels_ = labels;
  checking_ = true;
}

CellId Memory::add(Name name, int count) {
  const CellId first = static_cast<CellId>(cells_.size());
  cells_.insert(cells_.end(), count, Cell{0, kUnwritten, -1, -1, -1, 0});
  ranges_.push_back({first, count, name});
  return first;
}

std::string Memory::name(CellId cell) const {
  const auto range = std::prev(
      std::upper_bound(ranges_.begin(), ranges_.end(), cell,
                       [](CellId wanted, const Range& each) { return wanted < each.first; }));
  Name name = range->name;
  if (range->count > 1) {
    const auto index = static_cast<std::int16_t>(cell - range->first);
    (name.i < 0 ? name.i : name.j < 0 ? name.j : name.k) = index;
  }
  return to_string(name);
}

void Memory::race(CellId cell, const char* earlier, LabelId who, const char* later,
                  const Access& access) {
  if (checking_) {
    report_(FindingKind::race,
            fmt::format("{}: the {} by {} is not ordered before the {} by {}{}", name(cell),
                        earlier, to_string((*labels_)[who]), later,
                        to_string((*labels_)[access.who]), access.async ? " (bulk copy)" : ""));
  }
}

std::uint64_t Memory::read(CellId id, const Access& access, std::int32_t stamp) {
  Cell& cell = cells_[id];
  if (cell.writer >= 0 && !access.before->holds(cell.writer, cell.written)) {
    race(id, "write", cell.who, "read", access);
  } else if (stamp != kAnyStamp && cell.stamp != stamp && checking_) {
    report_(FindingKind::stale,
            cell.stamp == kUnwritten
                ? fmt::format("{} is read by {}, and nobody has written it", name(id),
                              to_string((*labels_)[access.who]))
                : fmt::format("{} is read by {} in iteration {}, and holds iteration {}", name(id),
                              to_string((*labels_)[access.who]), stamp, cell.stamp));
  }
  accesses_.add(cell.readers, access.component, access.tick, access.who,
                access.async ? nullptr : access.before);
  return cell.value;
}

void Memory::write(CellId id, const Access& access, std::uint64_t value, std::int32_t stamp) {
  Cell& cell = cells_[id];
  if (cell.writer >= 0 && !access.before->holds(cell.writer, cell.written)) {
    race(id, "write", cell.who, "write", access);
  } else if (const auto* reader = accesses_.unordered(cell.readers, *access.reads_before)) {
    race(id, "read", reader->who, "write", access);
  }
  accesses_.drop(cell.readers);
  cell.value = value;
  cell.stamp = stamp;
  cell.writer = access.component;
  cell.written = access.tick;
  cell.who = access.who;
}

void Memory::forget(CellId first, int count) {
  for (CellId id = first; id < first + count; ++id) {
    accesses_.drop(cells_[id].readers);
    cells_[id] = Cell{0, kUnwritten, -1, -1, -1, 0};
  }
}

}  // namespace fusescope::protocol

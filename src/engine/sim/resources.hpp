#pragma once
// What blocks contend for: links, device memory, the copy engine of one SM. Each is a server with a
// virtual clock: a request of so many nanoseconds of service ends that much after the server is free.
// Requests are made when they are issued, never ahead of time, and a transfer that crosses several
// servers advances each by its own share only, so that waiting for one does not block the others.

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fusescope::engine::sim {

class Server {
 public:
  // `service` [ns] of the server's time, asked for at `now`; returns when it has been given.
  double reserve(double now, double service) {
    free_ = std::max(free_, now) + service;
    return free_;
  }

 private:
  double free_ = 0;
};

// Device memory behind an L2 cache. What was touched is still in the cache while less than the cache's
// size has gone through memory since: a cheap stand-in for least recently used.
class DeviceMemory {
 public:
  DeviceMemory(double bytes_per_ns, double cache_bytes)
      : ns_per_byte_(1 / bytes_per_ns), cache_bytes_(cache_bytes) {}

  // Returns when `bytes` have gone through; `scale` > 1 where the access pattern reaches less than the
  // copy rate.
  double move(double now, double bytes, double scale = 1) {
    moved_ += bytes;
    return server_.reserve(now, bytes * ns_per_byte_ * scale);
  }

  // Marks one of a table's entries as touched; returns whether it was in the cache.
  bool touch(std::vector<double>& last_touch, std::size_t index) {
    double& last = last_touch[index];
    const bool resident = last >= 0 && moved_ - last < cache_bytes_;
    last = moved_;
    return resident;
  }

 private:
  Server server_;
  double ns_per_byte_;
  double cache_bytes_;
  double moved_ = 0;
};

}  // namespace fusescope::engine::sim

// The attribution of foreign traces as JSON.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/trace/attribution.hpp"

namespace fusescope::analysis {
namespace {

using Json = nlohmann::json;

template <typename Row, typename Make>
Json rows_of(const std::vector<Row>& rows, std::size_t most, Make make) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) {
    list.push_back(make(rows[i]));
  }
  return list;
}

Json kernel_row(const KernelRow& row) {
  return {{"name", row.name},
          {"count", row.count},
          {"total_ns", row.total_ns},
          {"exposed_ns", row.exposed_ns},
          {"beside", rows_of(row.beside, row.beside.size(), [](const Beside& beside) {
             return Json{{"name", beside.name}, {"ns", beside.ns}};
           })}};
}

Json stream_row(const StreamRow& row) {
  return {{"stream", row.stream},         {"slices", row.slices},
          {"busy_ns", row.busy_ns},       {"communication_ns", row.communication_ns},
          {"exposed_ns", row.exposed_ns}, {"overlapping_slices", row.overlapping}};
}

Json range_row(const RangeRow& row) {
  return {{"name", row.name},
          {"ranges", row.ranges},
          {"slices", row.slices},
          {"compute_ns", row.compute_ns},
          {"communication_ns", row.communication_ns},
          {"exposed_ns", row.exposed_ns}};
}

Json device_json(const DeviceAttribution& device, std::size_t rows) {
  Json out = {{"file", device.file},
              {"process", device.process},
              {"device", device.device},
              {"slices", device.slices},
              {"in_kernel_records", device.in_kernel_records},
              {"begin_ns", device.begin_ns},
              {"span_ns", device.span_ns()},
              {"compute_ns", device.part(WorkClass::compute)},
              {"fused_ns", device.part(WorkClass::fused)},
              {"exposed_communication_ns", device.exposed_ns()},
              {"unclear_ns", device.part(WorkClass::unclear)},
              {"exposed_memory_ns", device.part(WorkClass::memory)},
              {"sync_ns", device.part(WorkClass::sync)},
              {"idle_ns", device.idle.total_ns},
              {"idle",
               {{"launch_bound_ns", device.idle.launch_ns},
                {"dependency_bound_ns", device.idle.dependency_ns},
                {"unknown_ns", device.idle.unknown_ns}}},
              {"communication_ns", device.all(WorkClass::communication)},
              {"memory_ns", device.all(WorkClass::memory)},
              {"overlap_ns", device.overlap_ns},
              {"overlap_share", device.overlap_share()},
              {"communication_kernels", rows_of(device.communication, rows, kernel_row)},
              {"fused_kernels", rows_of(device.fused, rows, kernel_row)},
              {"unclear_kernels", rows_of(device.unclear, rows, kernel_row)},
              {"streams", rows_of(device.streams, rows, stream_row)},
              {"ranges", rows_of(device.ranges, rows, range_row)},
              {"profiler_steps", rows_of(device.steps, rows, range_row)}};
  out["rank"] = device.rank >= 0 ? Json(device.rank) : Json();
  return out;
}

Json skew_row(const SkewRow& row) {
  return {{"name", row.name},
          {"launches", row.launches},
          {"apart", row.apart},
          {"total_skew_ns", row.total_skew_ns},
          {"most_skew_ns", row.most_skew_ns},
          {"wait_ns", row.wait_ns},
          {"transfer_ns", row.transfer_ns},
          {"last", row.last}};
}

}  // namespace

std::string to_json(const TraceAttribution& attribution, std::span<const timeline::Trace> traces,
                    std::size_t rows) {
  Json files = Json::array();
  for (const timeline::Trace& trace : traces) {
    files.push_back({{"file", trace.file},
                     {"source", trace.source},
                     {"name", trace.name},
                     {"device_name", trace.device_name},
                     {"rank", trace.rank >= 0 ? Json(trace.rank) : Json()},
                     {"world_size", trace.world_size >= 0 ? Json(trace.world_size) : Json()},
                     {"bytes", trace.bytes},
                     {"gpu_slices", trace.gpu.size()},
                     {"host_slices", trace.host.size()}});
  }
  const Json out = {{"rules", attribution.rules},
                    {"files", files},
                    {"notes", attribution.notes},
                    {"devices", rows_of(attribution.devices, attribution.devices.size(),
                                        [&](const DeviceAttribution& device) {
                                          return device_json(device, rows);
                                        })},
                    {"arrival_skew", rows_of(attribution.skew, rows, skew_row)}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fusescope::analysis

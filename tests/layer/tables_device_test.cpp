// The tables of a CUDA stream against the golden ones, from a captured graph that is replayed with other
// routing. Skipped by name where there is no GPU.
#include "layer/tables_device.hpp"

#include <cuda_runtime_api.h>

#include "layer/table_checks.hpp"
#include "layer/tables.hpp"
#include "layer_test_support.hpp"

namespace fusescope {
namespace {

void require(cudaError_t error) {
  if (error != cudaSuccess) {
    throw std::runtime_error(cudaGetErrorString(error));
  }
}

// Device memory that is poisoned first: what a build does not write shows.
template <typename Type>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    require(cudaMalloc(&data_, count * sizeof(Type)));
    require(cudaMemset(data_, 0xa5, count * sizeof(Type)));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  Type* get() const { return static_cast<Type*>(data_); }
  void upload(const std::vector<Type>& values) {
    require(cudaMemcpy(data_, values.data(), values.size() * sizeof(Type), cudaMemcpyHostToDevice));
  }
  std::vector<Type> download() const {
    std::vector<Type> values(count_);
    require(cudaMemcpy(values.data(), data_, count_ * sizeof(Type), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  void* data_ = nullptr;
  std::size_t count_;
};

struct DeviceTables {
  explicit DeviceTables(const TableSizes& sizes)
      : experts(sizes.hits()),
        expert_rows(sizes.experts + 1),
        slots(sizes.hits()),
        pull_order(sizes.tokens()),
        job_order(sizes.tokens()),
        slack(sizes.max_row_blocks()),
        token_of_slot(sizes.max_rows()),
        row_block_experts(sizes.max_row_blocks()),
        workspace(table_workspace_bytes(sizes)) {}

  TablePointers pointers() const {
    return {expert_rows.get(), slots.get(),         pull_order.get(),       job_order.get(),
            slack.get(),       token_of_slot.get(), row_block_experts.get()};
  }
  ScheduleTables download() const {
    ScheduleTables tables{expert_rows.download(), slots.download(), pull_order.download(),
                          job_order.download(),   slack.download(), token_of_slot.download()};
    tables.slack.resize(tables.rows() / kRowBlock);
    tables.token_of_slot.resize(tables.rows());
    return tables;
  }

  DeviceArray<std::int32_t> experts, expert_rows, slots, pull_order, job_order, slack,
      token_of_slot, row_block_experts;
  DeviceArray<char> workspace;
};

class DeviceBuilder : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      GTEST_SKIP() << "no CUDA device";
    }
    require(cudaStreamCreate(&stream_));
  }
  void TearDown() override {
    if (stream_ != nullptr) {
      cudaStreamDestroy(stream_);
    }
  }
  cudaStream_t stream_ = nullptr;
};

TEST_F(DeviceBuilder, ReplaysOneGraphOverChangingRouting) {
  for (const auto& [ranks, tokens, experts, topk] : {std::tuple{4, 512, 64, 8},
                                                     {8, 37, 512, 16},
                                                     {1, 1, 1, 1},
                                                     {3, 333, 5, 5},
                                                     {8, 4096, 256, 8}}) {
    const Shape shape = test::small_shape(ranks, tokens, experts, topk);
    const TableSizes sizes(shape);
    DeviceTables device(sizes);
    for (const SlotOrder order :
         {SlotOrder::by_token, SlotOrder::interleave_sources, SlotOrder::rotate_from_self}) {
      const int rank = ranks - 1;
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      require(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
      build_tables_on_stream(stream_, sizes, device.experts.get(), order, rank, device.pointers(),
                             device.workspace.get());
      require(cudaStreamEndCapture(stream_, &graph));
      require(cudaGraphInstantiate(&executable, graph, 0));
      for (const char* spec : {"balanced", "zipf:1.2", "hot:1,0.5@3", "zipf:4@9"}) {
        const Problem problem = make_problem(shape, parse_routing(spec));
        SCOPED_TRACE(describe(problem));
        device.experts.upload(problem.routing.experts);
        require(cudaGraphLaunch(executable, stream_));
        require(cudaStreamSynchronize(stream_));
        const ScheduleTables golden = build_tables_golden(shape, problem.routing, order, rank);
        const auto difference = compare_tables(golden, device.download());
        ASSERT_FALSE(difference) << to_string(*difference);

        std::vector<std::int32_t> block_experts = experts_of_row_blocks(golden);
        block_experts.resize(sizes.max_row_blocks(), -1);
        EXPECT_EQ(device.row_block_experts.download(), block_experts);
        const std::vector<std::int32_t> slack = device.slack.download();
        for (int block = golden.row_blocks(); block < sizes.max_row_blocks(); ++block) {
          ASSERT_EQ(slack[block], kRowBlock);
        }
      }
      cudaGraphExecDestroy(executable);
      cudaGraphDestroy(graph);
    }
  }
}

// Printed, not judged: what the rebuild of the seed's tables costs inside a graph.
TEST_F(DeviceBuilder, PrintsTheTimeOfARebuild) {
  const Problem problem = make_problem(load_shape("seed-tp4"), parse_routing("zipf:1.2"));
  const TableSizes sizes(problem.shape);
  DeviceTables device(sizes);
  device.experts.upload(problem.routing.experts);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  require(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  build_tables_on_stream(stream_, sizes, device.experts.get(), SlotOrder::by_token, 0,
                         device.pointers(), device.workspace.get());
  require(cudaStreamEndCapture(stream_, &graph));
  std::size_t nodes = 0;
  require(cudaGraphGetNodes(graph, nullptr, &nodes));
  require(cudaGraphInstantiate(&executable, graph, 0));
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  require(cudaEventCreate(&begin));
  require(cudaEventCreate(&end));
  constexpr int kRuns = 200;
  for (int i = 0; i < 20; ++i) {
    require(cudaGraphLaunch(executable, stream_));
  }
  require(cudaEventRecord(begin, stream_));
  for (int i = 0; i < kRuns; ++i) {
    require(cudaGraphLaunch(executable, stream_));
  }
  require(cudaEventRecord(end, stream_));
  require(cudaEventSynchronize(end));
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, begin, end));
  std::printf("seed-tp4 tables: %zu graph nodes, %.1f us per rebuild, workspace %zu bytes\n", nodes,
              static_cast<double>(milliseconds) * 1000 / kRuns, table_workspace_bytes(sizes));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

}  // namespace
}  // namespace fusescope

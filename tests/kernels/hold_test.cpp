// The hold before the start line: released, it ends; unreleased or aborted, it ends as well, and says
// which of the two it was.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <new>

#include "kernels/cuda_check.hpp"
#include "kernels/device_barrier.hpp"

namespace fusescope::kernels {
namespace {

class Hold : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      static_cast<void>(cudaGetLastError());
      GTEST_SKIP() << "needs a GPU";
    }
    stream_ = make_stream();
    host_ = allocate_host(sizeof(HoldWords));
    words_ = new (host_.get()) HoldWords{};
    device_ = allocate_device(sizeof(std::uint32_t));
    guard_.deadline_ns = 40'000'000;  // a hold lasts a quarter of it at most
    guard_.ranks = 1;
    guard_.abort_words[0] = static_cast<std::uint32_t*>(device_.get());
    set_abort(0);
  }

  void set_abort(std::uint32_t value) {
    FUSESCOPE_CUDA(cudaMemcpy(device_.get(), &value, sizeof(value), cudaMemcpyHostToDevice));
  }
  void hold(std::uint64_t sequence) {
    launch_hold(guard_, words_, sequence, stream_.get());
    FUSESCOPE_CUDA(cudaStreamSynchronize(stream_.get()));
  }

  Stream stream_;
  HostBlock host_;
  DeviceBlock device_;
  HoldWords* words_ = nullptr;
  Guard guard_;
};

TEST_F(Hold, EndsWhenReleased) {
  words_->released = 2;
  hold(1);
  hold(2);
  EXPECT_EQ(words_->missed, 0U);
}

TEST_F(Hold, EndsUnreleasedAndSaysSo) {
  words_->released = 2;
  hold(3);
  EXPECT_EQ(words_->missed, 3U);
}

TEST_F(Hold, EndsWhenAborted) {
  set_abort(1);
  hold(1);
  EXPECT_EQ(words_->missed, 0U);
}

}  // namespace
}  // namespace fusescope::kernels

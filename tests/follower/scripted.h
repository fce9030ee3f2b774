#ifndef CLEW_TESTS_FOLLOWER_SCRIPTED_H_
#define CLEW_TESTS_FOLLOWER_SCRIPTED_H_

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/inputs.h"
#include "common/stream.h"

namespace clew::follower {

inline constexpr Tid kThread(7);

inline SyscallInput Call(uint64_t number, std::array<uint64_t, 6> args,
                         std::optional<int64_t> result) {
  SyscallInput call;
  call.number = number;
  call.args = args;
  call.result = result;
  return call;
}

// Items of kThread, one after the other. Whoever derives says NotBefore.
class ScriptedStreams : public StreamSource {
 public:
  explicit ScriptedStreams(std::vector<StreamItem> items)
      : items_(std::move(items)) {}
  const std::vector<Tid>& threads() const override { return threads_; }
  const std::vector<Slice>& slices() const override { return slices_; }
  Result<std::optional<StreamItem>> Next(Tid thread) override {
    EXPECT_EQ(thread, kThread);
    if (ahead() == nullptr) {
      return std::nullopt;
    }
    return items_[pulled_++];
  }
  size_t pulled() const { return pulled_; }

 protected:
  // What Next gives; null at the end.
  const StreamItem* ahead() const {
    return pulled_ < items_.size() ? &items_[pulled_] : nullptr;
  }

 private:
  std::vector<StreamItem> items_;
  size_t pulled_ = 0;
  std::vector<Tid> threads_ = {kThread};
  std::vector<Slice> slices_;
};

class ScriptedInputs final : public InputSource {
 public:
  explicit ScriptedInputs(std::vector<InputRecord> records = {})
      : records_(std::move(records)) {}
  Result<std::optional<InputRecord>> Next(Tid) override {
    if (next_ == records_.size()) {
      return std::nullopt;
    }
    return records_[next_++];
  }

 private:
  std::vector<InputRecord> records_;
  size_t next_ = 0;
};

}  // namespace clew::follower

#endif  // CLEW_TESTS_FOLLOWER_SCRIPTED_H_

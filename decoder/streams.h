#ifndef CLEW_DECODER_STREAMS_H_
#define CLEW_DECODER_STREAMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/stream.h"
#include "decoder/item_queue.h"
#include "decoder/perf_trace.h"
#include "decoder/pt/flow.h"

namespace clew::decoder {

struct StreamOptions {
  // Blocks and gaps that wait for their thread to be pulled.
  uint64_t buffered_items_max = uint64_t{1} << 24;
  // The threads whose items are kept; empty: every thread's. Items of others
  // are decoded and counted only.
  std::vector<Tid> threads = {};
  // What to do when buffered_items_max is exceeded. False: fail with kLimit.
  // True: drop the items of the last of threads() that still has them kept, and
  // is not the one being pulled; fail with kLimit if there is no such thread.
  bool forget_threads = false;
  // Bytes of code files that libipt keeps mapped; an eighth of that, in
  // addition, for what is decoded of them.
  uint64_t code_cache_bytes = SectionCache::kDefaultLimitBytes;
  // Processes whose code a core has at hand; that of others is put together
  // anew, some microseconds for each mapping. At least 2.
  size_t images_per_core_max = 64;
};

// What decoding met, so far.
struct StreamStats {
  uint64_t instructions = 0;
  uint64_t blocks = 0;
  uint64_t gaps = 0;  // places on cores, however many slices each covers
  uint64_t gap_bytes = 0;
  // Loss: instructions on a core for which no slice is known.
  uint64_t instructions_without_thread = 0;
  // Error: timing packets that went back in time, and blocks whose PT time and
  // slice exclude each other (these keep the slice's time).
  uint64_t tsc_backwards = 0;
  uint64_t time_contradictions = 0;
  uint64_t buffered_items_peak = 0;
};

// Of all cores; buffered_items_peak is 0.
StreamStats Sum(const std::map<CoreId, StreamStats>& by_core);

// The per-thread streams of a trace, decoded on demand, one core's next step at
// a time. Memory: what waits for threads that were not pulled, at most
// buffered_items_max, which one step of decoding can exceed (kLimit names it,
// or threads are forgotten). Not thread-safe.
class TraceStreams final : public StreamSource {
 public:
  // `trace` must outlive the streams. Code that a file does not have is a gap.
  [[nodiscard]] static Result<std::unique_ptr<TraceStreams>> Create(
      const PerfTrace& trace, const StreamOptions& options);
  ~TraceStreams() override;

  const std::vector<Tid>& threads() const override { return threads_; }
  const std::vector<Slice>& slices() const override { return trace_.slices(); }
  // kInvalidArgument: no such thread, or it is not kept.
  [[nodiscard]] Result<std::optional<StreamItem>> Next(Tid thread) override;
  TscTicks NotBefore(Tid thread) override;

  // True if Next(thread) gives all its items: it was chosen, and not forgotten.
  bool Keeps(Tid thread) const;

  // Every core with PT or with slices, in order.
  std::vector<CoreId> cores() const;
  // The next item of a core, whichever thread's: few items wait, however
  // unevenly threads go on. Must not be mixed with Next(Tid), nor with
  // options.threads. kInvalidArgument: no such core.
  [[nodiscard]] Result<std::optional<StreamItem>> NextOnCore(CoreId core);

  // Calls `visit` for every instruction of a block of these streams.
  [[nodiscard]] Status ForEachInstruction(
      const StreamBlock& block,
      const std::function<void(const WalkedInsn&)>& visit);

  StreamStats stats() const;
  // The same, of each core alone; buffered_items_peak is 0.
  std::map<CoreId, StreamStats> StatsByCore() const;

 private:
  struct Core;
  struct Thread {
    std::vector<uint32_t> slices;  // in order of time
    size_t current = 0;
    bool kept = true;
  };
  TraceStreams(const PerfTrace& trace, const StreamOptions& options);
  void AddCores();
  void AddThreads();
  void KeepOnly(const std::vector<Tid>& threads);
  void Forget(Thread& thread);
  bool ForgetLastThread();
  Status StartPulling(Tid tid);
  Result<std::optional<StreamItem>> FindNext();
  Status Advance(Core& core);
  Status MakeRoom();
  void UseCode(Core& core, const Slice* slice, TscTicks time);
  SpaceId SpaceOf(const Slice* slice) const;  // null: no slice is known
  std::string DescribeCode(Core& core, TraceeAddr ip) const;
  void TakeBlock(Core& core, const CoreBlock& block);
  void TakeGap(Core& core, CoreGap& gap);
  bool ExtendGap(Core& core, const CoreGap& gap);
  void NameAlso(Core& core, CoreGap& gap, TraceeAddr ip) const;
  void FlushGapOfOtherSlice(Core& core);
  void FlushGap(Core& core);
  void AddLossGaps();
  void Push(uint32_t slice, Gap gap);
  Result<std::optional<StreamItem>> Pop(uint32_t slice);
  bool IsOver(const Slice& slice) const;
  void DecodeRest(const Slice& slice);

  const PerfTrace& trace_;
  StreamOptions options_;
  SectionCache code_cache_;
  std::map<CoreId, std::unique_ptr<Core>> cores_;
  // Slices that NextOnCore is not done with.
  std::map<CoreId, std::span<const Slice>> rest_;
  std::vector<Tid> threads_;
  std::map<Tid, Thread> by_thread_;
  std::vector<ItemQueue> waiting_;  // by slice
  std::vector<uint8_t> kept_;       // by slice: 1 if its thread is
  uint64_t waiting_count_ = 0;
  uint64_t waiting_peak_ = 0;
  Thread* pulled_ = nullptr;  // by Next, last
  Tid pulled_tid_;
  // Of the slice that Next popped last: of the thread's, no other has items
  // before it is empty.
  ItemQueue* pulled_queue_ = nullptr;
  uint32_t pulled_slice_ = 0;
  std::map<CoreId, StreamStats> stats_;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_STREAMS_H_

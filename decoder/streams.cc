#include "decoder/streams.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/check.h"
#include "decoder/attribution.h"
#include "decoder/space_images.h"

namespace clew::decoder {

namespace {

// Steps decoded at a time once a thread's next item is wanted.
constexpr int kStepsPerAdvance = 64;

}  // namespace

// Hands on to the streams what its decoder finds.
struct TraceStreams::Core final : CoreSink {
  Core(TraceStreams& owner, const CoreTrace& trace,
       std::span<const Slice> of_core, SpaceImages of_spaces,
       const PerfTrace& all)
      : streams(owner),
        core(trace.core),
        slices(of_core),
        images(std::move(of_spaces)),
        decoder(trace.pieces, images.current().image, all.timing(), all.cpu()),
        attribution(of_core, all.tsc_at_switches()),
        stats(owner.stats_[trace.core]) {}

  void OnBlock(const CoreBlock& block) override {
    streams.TakeBlock(*this, block);
  }
  void OnEnter(const CoreEnter& enter) override {
    streams.UseCode(*this, attribution.OnEnter(enter), enter.time.lo);
    streams.FlushGapOfOtherSlice(*this);
  }
  void OnGap(CoreGap gap) override { streams.TakeGap(*this, gap); }
  void OnSync(TscTicks time) override {
    streams.UseCode(*this, attribution.OnSync(time), time);
    streams.FlushGapOfOtherSlice(*this);
  }

  TraceStreams& streams;
  CoreId core;
  std::span<const Slice> slices;
  SpaceImages images;
  CoreDecoder decoder;
  Attribution attribution;
  bool finished = false;
  // A gap not yet in its slices, as it may go on, and the index of the first.
  std::optional<CoreGap> pending;
  uint32_t pending_index = 0;
  uint32_t pending_codes = 0;  // named in it besides the first
  StreamStats& stats;          // of this core, in the streams
};

namespace {

bool Exclude(TscInterval a, TscInterval b) {
  return a.hi < b.lo || b.hi < a.lo;
}

TscInterval CutOff(TscInterval a, TscInterval b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

// The slice's time, cut off by `time` unless the two exclude each other.
TscInterval WithinSlice(TscInterval time, const Slice& slice) {
  return Exclude(time, slice.time) ? slice.time : CutOff(time, slice.time);
}

// The slices of one core: consecutive, as slices() is ordered.
std::span<const Slice> SlicesOf(const std::vector<Slice>& slices, CoreId core) {
  const auto before = [core](const Slice& slice) { return slice.core < core; };
  const auto within = [core](const Slice& slice) { return slice.core == core; };
  const auto first = std::partition_point(slices.begin(), slices.end(), before);
  const auto last = std::partition_point(first, slices.end(), within);
  return {first, last};
}

}  // namespace

TraceStreams::TraceStreams(const PerfTrace& trace, const StreamOptions& options)
    : trace_(trace),
      options_(options),
      code_cache_(options.code_cache_bytes),
      waiting_(trace.slices().size()),
      kept_(trace.slices().size(), 1) {}

TraceStreams::~TraceStreams() = default;

Result<std::unique_ptr<TraceStreams>> TraceStreams::Create(
    const PerfTrace& trace, const StreamOptions& options) {
  std::unique_ptr<TraceStreams> streams(new TraceStreams(trace, options));
  streams->AddCores();
  streams->AddThreads();
  streams->KeepOnly(options.threads);
  streams->AddLossGaps();
  return streams;
}

void TraceStreams::AddCores() {
  for (const CoreTrace& core_trace : trace_.cores()) {
    const auto of_core = SlicesOf(slices(), core_trace.core);
    SpaceImages images(trace_.spaces(), code_cache_,
                       options_.images_per_core_max);
    const Slice* first = of_core.empty() ? nullptr : &of_core.front();
    images.Enter(SpaceOf(first), TscTicks(0));
    cores_.emplace(core_trace.core,
                   std::make_unique<Core>(*this, core_trace, of_core,
                                          std::move(images), trace_));
  }
}

void TraceStreams::AddThreads() {
  std::vector<uint32_t> order(slices().size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
    return slices()[a].time.lo < slices()[b].time.lo;
  });
  for (const uint32_t id : order) {
    const auto [entry, is_new] = by_thread_.try_emplace(slices()[id].thread);
    entry->second.slices.push_back(id);
    if (is_new) {
      threads_.push_back(slices()[id].thread);
    }
  }
}

void TraceStreams::KeepOnly(const std::vector<Tid>& threads) {
  if (threads.empty()) {
    return;
  }
  for (auto& [tid, thread] : by_thread_) {
    if (std::ranges::find(threads, tid) == threads.end()) {
      Forget(thread);
    }
  }
}

void TraceStreams::Forget(Thread& thread) {
  thread.kept = false;
  for (const uint32_t slice : thread.slices) {
    waiting_count_ -= waiting_[slice].CountItems();
    waiting_[slice] = {};  // frees its memory
    kept_[slice] = 0;
  }
}

// False if there is none but the one being pulled.
bool TraceStreams::ForgetLastThread() {
  for (auto tid = threads_.rbegin(); tid != threads_.rend(); ++tid) {
    Thread& thread = by_thread_.at(*tid);
    if (thread.kept && &thread != pulled_) {
      Forget(thread);
      return true;
    }
  }
  return false;
}

bool TraceStreams::Keeps(Tid thread) const {
  const auto found = by_thread_.find(thread);
  return found != by_thread_.end() && found->second.kept;
}

// Records that were lost may have been context switches: what runs on the core
// around them is not known for certain.
void TraceStreams::AddLossGaps() {
  for (const SidebandLoss& loss : trace_.losses()) {
    for (const Slice& slice : slices()) {
      const bool meets =
          slice.time.lo <= loss.time && slice.time.hi >= loss.time;
      if (meets && (!loss.core_known || slice.core == loss.core)) {
        ++stats_[slice.core].gaps;
        Push(slice.id, Gap{.cause = GapCause::kLostRecords,
                           .core = slice.core,
                           .slice = slice.id,
                           .time = slice.time,
                           .aux_offset = 0,
                           .bytes = 0,
                           .ip = {},
                           .detail = fmt::format("{} sideband records lost",
                                                 loss.records)});
      }
    }
  }
}

Status TraceStreams::StartPulling(Tid tid) {
  const auto found = by_thread_.find(tid);
  if (found == by_thread_.end()) {
    return InvalidArgument("{}: no thread {} in it", trace_.name(), tid);
  }
  Thread& thread = found->second;
  if (!thread.kept) {
    return InvalidArgument("{}: the items of thread {} were not kept",
                           trace_.name(), tid);
  }
  pulled_ = &thread;
  pulled_tid_ = tid;
  pulled_queue_ = nullptr;
  return {};
}

Result<std::optional<StreamItem>> TraceStreams::Next(Tid tid) {
  if (pulled_ == nullptr || pulled_tid_ != tid) {
    CLEW_RETURN_IF_ERROR(StartPulling(tid));
  }
  if (pulled_queue_ != nullptr && !pulled_queue_->empty()) [[likely]] {
    --waiting_count_;
    return pulled_queue_->Pop(pulled_slice_);
  }
  return FindNext();
}

Result<std::optional<StreamItem>> TraceStreams::FindNext() {
  Thread& thread = *pulled_;
  while (thread.current < thread.slices.size()) {
    const Slice& slice = slices()[thread.slices[thread.current]];
    auto& queue = waiting_[slice.id];
    if (!queue.empty()) {
      pulled_queue_ = &queue;
      pulled_slice_ = slice.id;
      return Pop(slice.id);
    }
    if (IsOver(slice)) {
      queue = {};  // frees its memory
      ++thread.current;
      continue;
    }
    CLEW_RETURN_IF_ERROR(Advance(*cores_.at(slice.core)));
  }
  return std::optional<StreamItem>();
}

TscTicks TraceStreams::NotBefore(Tid tid) {
  const auto found = by_thread_.find(tid);
  if (found == by_thread_.end()) {
    return TscTicks(0);
  }
  const Thread& thread = found->second;
  for (size_t i = thread.current; i < thread.slices.size(); ++i) {
    const Slice& slice = slices()[thread.slices[i]];
    DecodeRest(slice);
    if (!waiting_[slice.id].empty() || !IsOver(slice)) {
      return slice.time.lo;
    }
  }
  return kTscUnknown;
}

// Goes on where a core is in `slice`, until there is an item of it or it is
// over. An error shows when the item is asked for.
void TraceStreams::DecodeRest(const Slice& slice) {
  const auto found = cores_.find(slice.core);
  if (found == cores_.end() ||
      found->second->attribution.index() != slice.on_core) {
    return;
  }
  Status status;
  while (status && waiting_[slice.id].empty() && !IsOver(slice)) {
    status = Advance(*found->second);
  }
}

std::vector<CoreId> TraceStreams::cores() const {
  std::set<CoreId> ids;
  for (const auto& [id, core] : cores_) {
    ids.insert(id);
  }
  for (const Slice& slice : slices()) {
    ids.insert(slice.core);
  }
  return {ids.begin(), ids.end()};
}

Result<std::optional<StreamItem>> TraceStreams::NextOnCore(CoreId id) {
  const auto found = cores_.find(id);
  const auto [at, is_new] = rest_.try_emplace(id);
  std::span<const Slice>& rest = at->second;
  if (is_new) {
    rest = SlicesOf(slices(), id);
  }
  if (found == cores_.end() && is_new && rest.empty()) {
    return InvalidArgument("{}: no core {} in it", trace_.name(), id);
  }
  while (true) {
    for (; !rest.empty(); rest = rest.subspan(1)) {
      const Slice& slice = rest.front();
      if (!waiting_[slice.id].empty()) {
        return Pop(slice.id);
      }
      if (!IsOver(slice)) {
        break;
      }
    }
    if (found == cores_.end() || found->second->finished) {
      return std::optional<StreamItem>();
    }
    CLEW_RETURN_IF_ERROR(Advance(*found->second));
  }
}

bool TraceStreams::IsOver(const Slice& slice) const {
  const auto core = cores_.find(slice.core);
  return core == cores_.end() || core->second->finished ||
         core->second->attribution.index() > slice.on_core;
}

// Some steps of the core.
Status TraceStreams::Advance(Core& core) {
  for (int i = 0; i < kStepsPerAdvance && !core.finished; ++i) {
    core.finished = !core.decoder.Step(core);
    if (core.finished) {
      FlushGap(core);
    }
    if (waiting_count_ > options_.buffered_items_max) [[unlikely]] {
      CLEW_RETURN_IF_ERROR(MakeRoom());
    }
  }
  return {};
}

Status TraceStreams::MakeRoom() {
  while (waiting_count_ > options_.buffered_items_max) {
    if (!options_.forget_threads || !ForgetLastThread()) {
      return LimitReached(
          "{}: {} blocks wait for threads that were not pulled; "
          "buffered_items_max is {}",
          trace_.name(), waiting_count_, options_.buffered_items_max);
    }
  }
  return {};
}

SpaceId TraceStreams::SpaceOf(const Slice* slice) const {
  return slice == nullptr ? trace_.spaces().At(0, TscTicks(0))
                          : trace_.SpaceOf(*slice);
}

// What `slice` runs has the code of its process at `time`.
void TraceStreams::UseCode(Core& core, const Slice* slice, TscTicks time) {
  const SpaceImage* before = &core.images.current();
  SpaceImage& image = core.images.Enter(SpaceOf(slice), time);
  if (&image != before) {
    core.decoder.SetImage(image.image);
  }
}

std::string TraceStreams::DescribeCode(Core& core, TraceeAddr ip) const {
  const Slice* slice = core.attribution.current();
  if (slice != nullptr && core.images.current().space == kSpaceUnknown &&
      trace_.spaces().several()) {
    return fmt::format(
        "process {}, of which no mapping is known (thread {}; no FORK, exec "
        "or MMAP record of it)",
        slice->process, slice->thread);
  }
  return core.images.current().code.Describe(ip);
}

void TraceStreams::TakeBlock(Core& core, const CoreBlock& block) {
  if (core.pending) [[unlikely]] {
    FlushGap(core);
  }
  core.attribution.OnBlock(block);
  const Slice* slice = core.attribution.current();
  if (slice == nullptr) {
    core.stats.instructions_without_thread += block.insn_count;
    return;
  }
  core.stats.instructions += block.insn_count;
  ++core.stats.blocks;
  const bool contradicts = Exclude(block.time, slice->time);
  core.stats.time_contradictions += contradicts ? 1 : 0;
  if (kept_[slice->id] == 0) {
    return;
  }
  const TscInterval time =
      contradicts ? slice->time : CutOff(block.time, slice->time);
  waiting_[slice->id].PushBlock(block.ip, block.insn_count, time.lo, time.hi,
                                block.interrupted, block.is_syscall,
                                block.code_bits);
  waiting_peak_ = std::max(waiting_peak_, ++waiting_count_);
}

void TraceStreams::TakeGap(Core& core, CoreGap& gap) {
  core.attribution.OnGap();
  if (ExtendGap(core, gap)) {
    return;
  }
  FlushGap(core);
  ++core.stats.gaps;
  core.stats.gap_bytes += gap.bytes;
  if (gap.cause == GapCause::kCodeMissing) {
    gap.detail = fmt::format("{} at {:#x}: {}", DescribeCode(core, gap.ip),
                             gap.ip, gap.detail);
  }
  core.pending_index = core.attribution.index();
  core.pending = std::move(gap);
  core.pending_codes = 0;
}

// A process without code would be a gap for each stretch of user mode: where
// nothing was decoded since the last one of the slice, that one goes on.
bool TraceStreams::ExtendGap(Core& core, const CoreGap& gap) {
  if (!core.pending || core.pending->cause != GapCause::kCodeMissing ||
      gap.cause != GapCause::kCodeMissing ||
      core.pending_index != core.attribution.index()) {
    return false;
  }
  const uint64_t bytes = gap.aux_offset + gap.bytes - core.pending->aux_offset;
  core.stats.gap_bytes += bytes - core.pending->bytes;
  core.pending->bytes = bytes;
  core.pending->time.hi = std::max(core.pending->time.hi, gap.time.hi);
  core.pending->resumes = gap.resumes;
  NameAlso(core, *core.pending, gap.ip);
  return true;
}

// The gap that waits is of this code, too: the first few are named.
void TraceStreams::NameAlso(Core& core, CoreGap& gap, TraceeAddr ip) const {
  constexpr uint32_t kCodesMax = 8;
  if (core.pending_codes == kCodesMax) {
    return;
  }
  std::string& detail = gap.detail;
  const std::string code = DescribeCode(core, ip);
  if (detail.find(code) == detail.npos) {
    detail += fmt::format("; {} at {:#x}", code, ip);
    ++core.pending_codes;
  }
}

void TraceStreams::FlushGapOfOtherSlice(Core& core) {
  if (core.pending && core.pending_index != core.attribution.index()) {
    FlushGap(core);
  }
}

// A gap is in every slice that it may touch.
void TraceStreams::FlushGap(Core& core) {
  if (!core.pending) {
    return;
  }
  CoreGap gap = *std::move(core.pending);
  core.pending.reset();
  if (!gap.resumes.empty()) {
    gap.detail += "; " + gap.resumes;
  }
  for (uint32_t i = core.pending_index; i < core.slices.size(); ++i) {
    const Slice& slice = core.slices[i];
    if (slice.time.lo > gap.time.hi) {
      break;
    }
    if (slice.time.hi < gap.time.lo && i != core.pending_index) {
      continue;
    }
    Push(slice.id, Gap{.cause = gap.cause,
                       .core = core.core,
                       .slice = slice.id,
                       .time = WithinSlice(gap.time, slice),
                       .aux_offset = gap.aux_offset,
                       .bytes = gap.bytes,
                       .ip = gap.ip,
                       .detail = gap.detail});
  }
}

void TraceStreams::Push(uint32_t slice, Gap gap) {
  if (kept_[slice] == 0) {
    return;
  }
  waiting_[slice].Push(std::move(gap));
  waiting_peak_ = std::max(waiting_peak_, ++waiting_count_);
}

// The slice's first waiting item. REQUIRES: there is one.
Result<std::optional<StreamItem>> TraceStreams::Pop(uint32_t slice) {
  --waiting_count_;
  return waiting_[slice].Pop(slice);
}

Status TraceStreams::ForEachInstruction(
    const StreamBlock& block,
    const std::function<void(const WalkedInsn&)>& visit) {
  CLEW_CHECK(block.slice < slices().size(), "no slice {}", block.slice);
  const Slice& slice = slices()[block.slice];
  SpaceImage& image =
      cores_.at(slice.core)->images.Find(trace_.SpaceOf(slice), block.time.lo);
  return image.walker.Walk(block.ip, block.insn_count, block.code_bits, visit);
}

StreamStats Sum(const std::map<CoreId, StreamStats>& by_core) {
  StreamStats sum;
  for (const auto& [core, stats] : by_core) {
    sum.instructions += stats.instructions;
    sum.blocks += stats.blocks;
    sum.gaps += stats.gaps;
    sum.gap_bytes += stats.gap_bytes;
    sum.instructions_without_thread += stats.instructions_without_thread;
    sum.tsc_backwards += stats.tsc_backwards;
    sum.time_contradictions += stats.time_contradictions;
  }
  return sum;
}

StreamStats TraceStreams::stats() const {
  StreamStats sum = Sum(StatsByCore());
  sum.buffered_items_peak = waiting_peak_;
  return sum;
}

std::map<CoreId, StreamStats> TraceStreams::StatsByCore() const {
  std::map<CoreId, StreamStats> stats = stats_;
  for (const auto& [id, core] : cores_) {
    stats[id].tsc_backwards = core->decoder.backwards();
  }
  return stats;
}

}  // namespace clew::decoder

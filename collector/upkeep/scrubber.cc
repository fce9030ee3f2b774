#include "collector/upkeep/scrubber.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <sstream>
#include <utility>

#include "common/check.h"

namespace clew::collector {
namespace {

constexpr std::string_view kScrubMagic = "clew scrub 1";
constexpr double kLook_s = 60;      // whether the next walk is due
constexpr double kReadPause_s = 1;  // until the store knows what it has
constexpr int64_t kSavePeriod_s = 60;
// What small chunks cost beside their bytes: a rate would let ten thousands of
// them be opened in a second.
constexpr uint64_t kStepBytes = 16384;

}  // namespace

ScrubWalk::ScrubWalk(BundleStore& store, std::optional<ChunkId> last)
    : store_(store), lists_(store.List()), last_(last) {}

Status ScrubWalk::StepList(const BundleId& id) {
  const auto list = store_.ReadList(id);
  if (list || !IsDamage(list.error())) {
    return {};  // or it was removed
  }
  (void)store_.IsWhole(id);  // is known from here on
  return std::unexpected(list.error());
}

Result<std::optional<uint64_t>> ScrubWalk::Step() {
  if (next_list_ < lists_.size() && !last_) {
    CLEW_RETURN_IF_ERROR(StepList(lists_[next_list_++].id));
    return std::optional<uint64_t>(0);
  }
  const auto chunk = store_.chunks().After(last_);
  if (!chunk) {
    return std::nullopt;
  }
  last_ = chunk->id;
  CLEW_RETURN_IF_ERROR(store_.chunks().Scrub(*chunk));
  return std::optional(chunk->size_bytes);
}

std::unique_ptr<Scrubber> Scrubber::Start(FileSystem& files,
                                          const Options& options,
                                          BundleStore& store) {
  CLEW_CHECK(options.bytes_per_s > 0, "a scrubber without a rate");
  std::unique_ptr<Scrubber> scrubber(new Scrubber(files, options, store));
  scrubber->Load();
  store.SetScrubbed(scrubber->progress_.end_s);
  scrubber->thread_ = std::thread([at = scrubber.get()] { at->Run(); });
  return scrubber;
}

Scrubber::~Scrubber() { Stop(); }

void Scrubber::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_asked_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

ScrubCounts Scrubber::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void Scrubber::Load() {
  const auto saved = ReadWholeText(options_.path);
  if (!saved) {
    return;
  }
  std::istringstream text(*saved);
  std::string magic;
  std::string last;
  Progress read;
  if (std::getline(text, magic) && magic == kScrubMagic && text >> read.end_s &&
      text >> read.begin_s && text >> last) {
    read.last = ChunkId::Parse(last);
    progress_ = read;
  }
}

// A walk that is done twice does no harm, so nothing is synced but the bytes.
void Scrubber::Save() {
  const std::string text = fmt::format(
      "{}\n{} {} {}\n", kScrubMagic, progress_.end_s, progress_.begin_s,
      progress_.last ? progress_.last->hex() : "-");
  const std::string partial = options_.path + ".partial";
  if (WriteWholeFile(files_, partial, std::as_bytes(std::span(text)))) {
    (void)files_.Rename(partial, options_.path);
  }
  saved_s_ = options_.now_s();
}

bool Scrubber::IsDue() const {
  const int64_t now_s = options_.now_s();
  return progress_.last || progress_.begin_s <= 0 ||
         progress_.begin_s > now_s ||
         static_cast<uint64_t>(now_s - progress_.begin_s) >= options_.period_s;
}

void Scrubber::Run() {
  while (!store_.IsAllRead()) {
    if (!Rest(kReadPause_s)) {
      return;
    }
  }
  do {
    if (IsDue() && !Walk()) {
      return;
    }
  } while (Rest(kLook_s));
}

bool Scrubber::Walk() {
  if (!progress_.last) {
    progress_.begin_s = options_.now_s();
  }
  ScrubWalk walk(store_, progress_.last);
  while (true) {
    const auto step = walk.Step();
    Count(step);
    progress_.last = walk.last();
    // What could not be read counts as a chunk.
    const std::optional<uint64_t> read = step ? *step : kChunkBytes;
    if (!read) {
      break;
    }
    const uint64_t bytes = std::max(*read, kStepBytes);
    if (!Rest(static_cast<double>(bytes) /
              static_cast<double>(options_.bytes_per_s))) {
      progress_.begin_s = progress_.last ? progress_.begin_s : 0;
      Save();
      return false;
    }
    if (options_.now_s() - saved_s_ >= kSavePeriod_s) {
      Save();
    }
  }
  progress_.last.reset();
  progress_.end_s = options_.now_s();
  store_.SetScrubbed(progress_.end_s);
  Save();
  return true;
}

void Scrubber::Count(const Result<std::optional<uint64_t>>& step) {
  {
    const std::lock_guard lock(mutex_);
    counts_.bytes += step ? step->value_or(0) : 0;
    counts_.found +=
        !step && step.error().code == ErrorCode::kCorruptInput ? 1 : 0;
  }
  if (!step && options_.report) {
    options_.report(step.error().message);
  }
}

bool Scrubber::Rest(double seconds) {
  std::unique_lock lock(mutex_);
  return !stop_asked_.wait_for(lock, std::chrono::duration<double>(seconds),
                               [this] { return stop_; });
}

}  // namespace clew::collector

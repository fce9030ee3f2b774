#include "replayer/block_ips.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace clew::replayer {

void BlockIps::SetCodeVersion(uint64_t version) {
  if (version != version_) {
    blocks_.clear();
    ips_ = 0;
    version_ = version;
  }
}

bool BlockIps::MayStop(const StreamBlock& block,
                       const StopPoints& points) const {
  const auto known = blocks_.find(KeyOf(block));
  return known == blocks_.end() ||
         std::ranges::any_of(known->second, [&points](uint64_t ip) {
           return points.HasBreakpoint(ip);
         });
}

bool BlockIps::Knows(const StreamBlock& block) const {
  return blocks_.contains(KeyOf(block));
}

void BlockIps::Learn(const StreamBlock& block, std::vector<uint64_t> ips) {
  CLEW_CHECK(ips.size() == block.insn_count, "{} addresses for {} instructions",
             ips.size(), block.insn_count);
  if (ips_ + ips.size() > kIpsMax) {
    blocks_.clear();
    ips_ = 0;
  }
  const size_t count = ips.size();
  if (blocks_.emplace(KeyOf(block), std::move(ips)).second) {
    ips_ += count;
  }
}

}  // namespace clew::replayer

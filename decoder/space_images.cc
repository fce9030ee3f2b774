#include "decoder/space_images.h"

#include <algorithm>
#include <utility>

namespace clew::decoder {

// One more is needed where one is entered and another is looked at.
SpaceImages::SpaceImages(const AddressSpaces& spaces, SectionCache& cache,
                         size_t images_max)
    : spaces_(spaces),
      cache_(cache),
      images_max_(std::max<size_t>(images_max, 2)) {}

SpaceImage& SpaceImages::Enter(SpaceId space, TscTicks time) {
  if (current_ == nullptr || current_->space != space) {
    current_ = &Find(space, time);
  }
  current_->code.MapUntil(time, current_->image, current_->replaced);
  return *current_;
}

SpaceImage& SpaceImages::Find(SpaceId space, TscTicks time) {
  if (found_ != nullptr && found_->space == space) {
    return *found_;
  }
  const auto known = images_.find(space);
  found_ = known != images_.end() ? known->second.get() : &Make(space, time);
  found_->last_used = ++uses_;
  return *found_;
}

SpaceImage& SpaceImages::Make(SpaceId space, TscTicks time) {
  MakeRoom();
  auto image = std::make_unique<SpaceImage>(spaces_.MapOf(space), cache_);
  image->space = space;
  image->code.MapInitial(image->image);
  image->code.MapUntil(time, image->image, image->replaced);
  return *(images_[space] = std::move(image));
}

void SpaceImages::MakeRoom() {
  if (images_.size() < images_max_) {
    return;
  }
  auto oldest = images_.end();
  for (auto it = images_.begin(); it != images_.end(); ++it) {
    const bool older = oldest == images_.end() ||
                       it->second->last_used < oldest->second->last_used;
    if (it->second.get() != current_ && older) {
      oldest = it;
    }
  }
  if (found_ == oldest->second.get()) {
    found_ = nullptr;
  }
  images_.erase(oldest);
}

}  // namespace clew::decoder

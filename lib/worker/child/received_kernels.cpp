#include "worker/child/received_kernels.hpp"

#include "jit/registry.hpp"

namespace coaccel::worker {

bool received_kernels::add(const image_frame& frame)
{
    const auto found = entries_.find(frame.id);
    entry* const e = found == entries_.end() ? begin(frame) : &found->second;
    if (!e || !e->growing)
        return false;
    jit::image& i = *e->growing;
    if (frame.total != e->total || frame.offset != i.code.size() || frame.part.size() > e->total - i.code.size() ||
        frame.name != i.name || frame.symbol != i.symbol)
        return false;
    i.code.append(reinterpret_cast<const char*>(frame.part.data()), frame.part.size());
    if (i.code.size() == e->total) {
        i.parameters = jit::parse_symbol(i.symbol);
        e->made = jit::register_image(std::move(e->growing));
    }
    return true;
}

received_kernels::entry* received_kernels::begin(const image_frame& frame)
{
    if (frame.offset != 0 || frame.total > limits_.bytes_each || entries_.size() >= limits_.images)
        return nullptr;
    const std::uint64_t wanted = frame.total + frame.name.size() + frame.symbol.size();
    if (wanted > limits_.bytes - bytes_)
        return nullptr;
    bytes_ += wanted;
    entry& e = entries_[frame.id];
    e.total = frame.total;
    e.bytes = wanted;
    e.growing = std::make_shared<jit::image>();
    e.growing->name = frame.name;
    e.growing->symbol = frame.symbol;
    return &e;
}

bool received_kernels::remove(std::uint64_t id) noexcept
{
    const auto found = entries_.find(id);
    if (found == entries_.end())
        return false;
    bytes_ -= found->second.bytes;
    entries_.erase(found);
    return true;
}

std::shared_ptr<const jit::image> received_kernels::find(std::uint64_t id) const noexcept
{
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : found->second.made;
}

} // namespace coaccel::worker

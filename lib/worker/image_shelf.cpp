#include "worker/image_shelf.hpp"

#include "jit/registry.hpp"

namespace coaccel::worker {

bool image_shelf::add(const image_frame& frame)
{
    entry& e = entries_[frame.id];
    if (e.made || frame.offset != e.code.size())
        return false;
    e.code.append(reinterpret_cast<const char*>(frame.part.data()), frame.part.size());
    if (e.code.size() < frame.total)
        return true;
    auto made = std::make_shared<jit::image>();
    made->name = frame.name;
    made->symbol = frame.symbol;
    made->code = std::move(e.code);
    made->parameters = jit::parse_symbol(made->symbol);
    e.made = jit::register_image(std::move(made));
    return true;
}

std::shared_ptr<const jit::image> image_shelf::find(std::uint64_t id) const noexcept
{
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : found->second.made;
}

} // namespace coaccel::worker

#include "worker/parent/sent_kernels.hpp"

#include "jit/image.hpp"

namespace coaccel::worker {
namespace {

/// The size as the worker counts it. The worker may store a shortened name, never a longer one.
std::uint64_t bytes_of(const jit::image& i) noexcept
{
    return i.code.size() + i.name.size() + i.symbol.size();
}

error_code refuse(const jit::image& i, const std::string& why)
{
    return make_error_with_message(errc::invalid_argument, "the kernel " + i.name.substr(0, 200) + ": " + why);
}

} // namespace

error_code sent_kernels::check(const jit::image& i) const
{
    if (i.code.size() > limits_.bytes_each)
        return refuse(i, "its code has " + std::to_string(i.code.size()) + " bytes, and a worker takes at most " +
                             std::to_string(limits_.bytes_each));
    if (i.symbol.size() > limits_.symbol)
        return refuse(i, "its symbol has " + std::to_string(i.symbol.size()) +
                             " characters, and a worker takes at most " + std::to_string(limits_.symbol));
    return {};
}

bool sent_kernels::has_room_for(const jit::image& i) const noexcept
{
    return bytes_by_id_.size() < limits_.images && bytes_of(i) <= limits_.bytes - bytes_;
}

error_code sent_kernels::full(const jit::image& i) const
{
    return refuse(i, "with its " + std::to_string(bytes_of(i)) + " bytes the kernels in use would be more than the " +
                         std::to_string(limits_.images) + " kernels and " + std::to_string(limits_.bytes) +
                         " bytes that a worker takes");
}

void sent_kernels::add(const jit::image& i)
{
    if (bytes_by_id_.emplace(i.id, bytes_of(i)).second)
        bytes_ += bytes_of(i);
}

} // namespace coaccel::worker

#include "cuda/driver/host_func_notifier.hpp"

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace coaccel::cuda {

host_func_notifier::~host_func_notifier()
{
    disarm();
    delete cell_;
}

CUresult host_func_notifier::arm(const driver_api& api, CUstream stream, notification n) noexcept
{
    cell_->notify = n;
    cell_->armed.store(true, std::memory_order_seq_cst);
    const CUresult r = api.cuLaunchHostFunc(stream, &host_func_notifier::fire, cell_);
    if (r != CUDA_SUCCESS)
        cell_->armed.store(false, std::memory_order_seq_cst);
    return r;
}

void host_func_notifier::disarm() noexcept
{
    if (!cell_)
        return;
    cell_->armed.store(false, std::memory_order_seq_cst);
    // A notification is one store and one post, so this wait is short.
    while (cell_->inside.load(std::memory_order_seq_cst) != 0)
        std::this_thread::yield();
}

void host_func_notifier::abandon() noexcept
{
    disarm();
    static std::mutex mutex;
    static auto& abandoned = *new std::vector<cell*>;
    const std::scoped_lock lock(mutex);
    try {
        abandoned.push_back(cell_);
    } catch (...) {
        // Without memory the cell is leaked without a record; the driver can still use it.
    }
    cell_ = nullptr;
}

void host_func_notifier::fire(void* argument)
{
    auto* c = static_cast<cell*>(argument);
    c->inside.fetch_add(1, std::memory_order_seq_cst);
    if (c->armed.exchange(false, std::memory_order_seq_cst)) {
        // Copy first: the notified code may arm the next notification at once.
        const notification n = c->notify;
        n.function(n.argument);
    }
    c->inside.fetch_sub(1, std::memory_order_release);
}

} // namespace coaccel::cuda

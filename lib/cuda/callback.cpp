#include "cuda/callback.hpp"

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace coaccel::cuda {

callback::~callback()
{
    disarm();
    delete cell_;
}

CUresult callback::arm(const driver_api& api, CUstream stream, notification n) noexcept
{
    cell_->notify = n;
    cell_->armed.store(true, std::memory_order_seq_cst);
    const CUresult r = api.cuLaunchHostFunc(stream, &callback::fire, cell_);
    if (r != CUDA_SUCCESS)
        cell_->armed.store(false, std::memory_order_seq_cst);
    return r;
}

void callback::disarm() noexcept
{
    if (!cell_)
        return;
    cell_->armed.store(false, std::memory_order_seq_cst);
    // A notification is a store and a post: it is over in no time.
    while (cell_->inside.load(std::memory_order_seq_cst) != 0)
        std::this_thread::yield();
}

void callback::abandon() noexcept
{
    disarm();
    static std::mutex mutex;
    static auto& abandoned = *new std::vector<cell*>;
    const std::scoped_lock lock(mutex);
    try {
        abandoned.push_back(cell_);
    } catch (...) {
        // Then it is not remembered either, which is all the same to the driver.
    }
    cell_ = nullptr;
}

void callback::fire(void* argument)
{
    auto* c = static_cast<cell*>(argument);
    c->inside.fetch_add(1, std::memory_order_seq_cst);
    if (c->armed.exchange(false, std::memory_order_seq_cst)) {
        // Whoever is notified may arm the next one at once.
        const notification n = c->notify;
        n.function(n.argument);
    }
    c->inside.fetch_sub(1, std::memory_order_release);
}

} // namespace coaccel::cuda

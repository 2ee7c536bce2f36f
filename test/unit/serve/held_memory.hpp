#ifndef COACCEL_TEST_UNIT_SERVE_HELD_MEMORY_HPP
#define COACCEL_TEST_UNIT_SERVE_HELD_MEMORY_HPP

#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <span>
#include <sys/mman.h>

namespace test {

/// Memory whose use blocks the thread until the test opens it, so that a copy from or to it is held in the middle. One
/// object at a time.
class held_memory {
public:
    /// All elements have this value.
    held_memory(std::size_t elements, float value) : bytes_(elements * sizeof(float))
    {
        start_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(start_ != MAP_FAILED);
        for (float& v : elements_())
            v = value;
        REQUIRE(::mprotect(start_, bytes_, PROT_NONE) == 0);
        active() = this;
        struct sigaction action{};
        action.sa_sigaction = &on_fault;
        action.sa_flags = SA_SIGINFO;
        REQUIRE(::sigaction(SIGSEGV, &action, &before_) == 0);
    }
    held_memory(const held_memory&) = delete;
    held_memory& operator=(const held_memory&) = delete;

    ~held_memory()
    {
        open();
        ::sigaction(SIGSEGV, &before_, nullptr);
        active() = nullptr;
        ::munmap(start_, bytes_);
    }

    std::span<float> elements() const noexcept { return elements_(); }

    /// Whether a thread is in the middle of its use.
    bool reached() const noexcept { return reached_; }

    void open() noexcept
    {
        ::mprotect(start_, bytes_, PROT_READ | PROT_WRITE);
        open_ = true;
    }

private:
    static std::atomic<held_memory*>& active() noexcept
    {
        static std::atomic<held_memory*> one{nullptr};
        return one;
    }

    std::span<float> elements_() const noexcept { return {static_cast<float*>(start_), bytes_ / sizeof(float)}; }

    /// Returning repeats the instruction.
    static void on_fault(int, siginfo_t* info, void*)
    {
        held_memory* const here = active();
        const auto* const at = static_cast<const char*>(info->si_addr);
        const auto* const start = here ? static_cast<const char*>(here->start_) : nullptr;
        if (!here || at < start || at >= start + here->bytes_) {
            // A real fault, which happens again.
            std::signal(SIGSEGV, SIG_DFL);
            return;
        }
        here->reached_ = true;
        while (!here->open_) {
            const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
            ::nanosleep(&pause, nullptr);
        }
    }

    const std::size_t bytes_;
    void* start_ = nullptr;
    struct sigaction before_{};
    std::atomic<bool> reached_{false};
    std::atomic<bool> open_{false};
};

} // namespace test

#endif

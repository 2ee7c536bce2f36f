#include "chaos.hpp"
#include "posix/unique_fd.hpp"
#include "processes.hpp"
#include "worker/protocol/wire.hpp"

#include <coaccel/core/log.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <vector>

namespace chaos {
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

class control_area {
public:
    explicit control_area(int pid)
    {
        const auto path =
            "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(static_cast<int>(worker::descriptor::control));
        std::error_code ec;
        if (std::filesystem::read_symlink(path, ec).string().find("coaccel-control") == std::string::npos)
            return;
        const coaccel::detail::unique_fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        struct stat found = {};
        if (!fd || ::fstat(fd.get(), &found) != 0 || found.st_size != static_cast<off_t>(worker::control_bytes))
            return;
        void* const at = ::mmap(nullptr, worker::control_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
        if (at != MAP_FAILED)
            memory_ = static_cast<std::byte*>(at);
    }

    control_area(const control_area&) = delete;
    control_area& operator=(const control_area&) = delete;

    ~control_area()
    {
        if (memory_)
            ::munmap(memory_, worker::control_bytes);
    }

    explicit operator bool() const noexcept { return memory_ != nullptr; }

    void scribble(dice& random)
    {
        auto& block = *std::launder(reinterpret_cast<worker::control_block*>(memory_));
        auto& ring = random.pick(2) == 0 ? block.requests : block.replies;
        const auto nonsense = std::uint64_t(random.pick(1u << 31)) << 32 | random.pick(1u << 31);
        switch (random.pick(4)) {
        case 0: ring.written.store(nonsense); break;
        case 1: ring.taken.store(nonsense); break;
        case 2:
            // Both rings and their content.
            fill(random, worker::ring_offset, 2 * worker::ring_bytes);
            break;
        default: {
            const auto first = static_cast<std::size_t>(reinterpret_cast<std::byte*>(&block.requests) - memory_);
            fill(random, first, sizeof(worker::control_block) - first);
        }
        }
    }

private:
    void fill(dice& random, std::size_t first, std::size_t size)
    {
        for (std::size_t i = 0; i < size; ++i)
            const_cast<volatile std::byte*>(memory_)[first + i] = static_cast<std::byte>(random.pick(256));
    }

    std::byte* memory_ = nullptr;
};

asio::awaitable<bool> moves_on(const device& gpu, generation from, steady_clock::duration patience)
{
    const auto end = steady_clock::now() + patience;
    for (;;) {
        const auto now = gpu.status();
        if (now.generation != from || now.state == device_state::failed || now.state == device_state::stopped)
            co_return true;
        if (steady_clock::now() > end)
            co_return false;
        co_await pause(2ms);
    }
}

// Returns a child that did not exist before; zero if none appears.
asio::awaitable<int> next_child(const std::vector<int>& before)
{
    for (int i = 0; i < 100; ++i) {
        for (const int pid : children())
            if (std::ranges::find(before, pid) == before.end())
                co_return pid;
        co_await pause(1ms);
    }
    co_return 0;
}

/// How workers ended, according to the log.
struct ends {
    static constexpr std::array<std::pair<const char*, std::string_view>, 4> kinds{{{"killed", "ended by signal"},
                                                                                    {"stood_still", "no sign of life"},
                                                                                    {"corrupted", "nonsense"},
                                                                                    {"refused", "refused to start"}}};

    static void add(std::string_view line)
    {
        for (std::size_t i = 0; i < kinds.size(); ++i)
            if (line.find(kinds[i].second) != std::string_view::npos)
                ++counts[i];
    }

    static void print()
    {
        (void)flush_log();
        for (std::size_t i = 0; i < kinds.size(); ++i)
            std::printf("%s=%llu ", kinds[i].first, static_cast<unsigned long long>(counts[i].load()));
    }

    static bool all()
    {
        (void)flush_log();
        return std::ranges::all_of(counts, [](const auto& n) { return n > 0; });
    }

    static inline std::array<std::atomic<std::uint64_t>, kinds.size()> counts{};
};

/// Devices in worker processes, into which all faults of a process are injected.
class isolated final : public scenario {
public:
    device_options options_for(int i) const override
    {
        device_options o = common_options(i);
        o.isolation = isolation::worker;
        o.standby = i % 2;
        o.host.memory_limit = 16 << 20;
        o.context.completion = i == 2 ? completion::sync : completion::adaptive;
        o.context.hang_timeout = 300ms;
        o.restart.max_restarts = 30;
        o.worker.staging_bytes = 1 << 20;
        o.worker.heartbeat = 300ms;
        // A worker that is stopped before its first heartbeat has this much time.
        o.worker.start_timeout = 3s;
        o.worker.log = &ends::add;
        return o;
    }

    std::uint32_t most_elements() const noexcept override { return 400'000; }
    std::chrono::milliseconds longest_pause() const noexcept override { return 200ms; }

    bool begin() override
    {
        // Objects that are created once and kept exist after the first device.
        error_code ec;
        {
            asio::io_context io;
            device::async_create(io.get_executor(), options_for(0), [&](error_code e, const device&) { ec = e; });
            io.run();
        }
        if (ec)
            std::fprintf(stderr, "no device can be made: %s\n", ec.message().c_str());
        descriptors_ = open_descriptors();
        return !ec;
    }

    asio::awaitable<void> strike(seat& s, tally& counts, dice& random) override
    {
        const auto gpu = s.current();
        auto stats = co_await gpu.async_stats();
        if (!stats || stats.value().state == device_state::failed) {
            co_await renew(s, counts);
            co_return;
        }
        const int pid = stats.value().hardware.process;
        switch (random.pick(13)) {
        case 0:
        case 1: fault(pid, SIGKILL); break;
        case 2: fault(pid, SIGSTOP); break;
        case 3: s.injector.poison(); break;
        case 4: s.injector.hang(); break;
        case 5:
            s.injector.refuse_starts(1 + random.pick(2));
            fault(pid, SIGKILL);
            break;
        case 6: co_await at_birth(pid, random); break;
        case 7: any_child(random); break;
        case 8:
        case 9: co_await forge(s, gpu, stats.value().generation, pid, counts, random); break;
        case 10: co_await roll_over(gpu, counts); break;
        case 11: gpu.cancel(); break;
        default: co_await renew(s, counts);
        }
    }

    std::uint64_t faults() const noexcept override { return faults_; }

    void print_ends() const override { ends::print(); }
    bool saw_all_ends() const override { return ends::all(); }

    std::uint64_t left() override { return left_resources(descriptors_); }

private:
    void fault(int pid, int signal)
    {
        send(pid, signal);
        ++faults_;
    }

    // The successor is killed as soon as it exists, or starts slowly.
    asio::awaitable<void> at_birth(int pid, dice& random)
    {
        const auto before = children();
        fault(pid, SIGKILL);
        const int next = co_await next_child(before);
        if (next == 0)
            co_return;
        if (random.pick(2) == 0) {
            fault(next, SIGKILL);
            co_return;
        }
        fault(next, SIGSTOP);
        co_await pause(100ms);
        send(next, SIGCONT);
    }

    // It may be a standby.
    void any_child(dice& random)
    {
        const auto all = children();
        if (!all.empty())
            fault(all[random.pick(static_cast<std::uint32_t>(all.size()))], random.pick(4) == 0 ? SIGSTOP : SIGKILL);
    }

    asio::awaitable<void> forge(seat& s, device gpu, generation g, int pid, tally& counts, dice& random)
    {
        control_area area(pid);
        if (!area)
            co_return;
        ++faults_;
        s.next_epoch();
        area.scribble(random);
        // Invalid data that is never read is harmless, so the worker may continue.
        if (!co_await moves_on(gpu, g, 50ms))
            send(pid, SIGKILL);
        if (!co_await moves_on(gpu, g, 20s))
            ++counts.stuck;
        s.next_epoch();
    }

    asio::awaitable<void> roll_over(device gpu, tally& counts)
    {
        counts.ops.add();
        // The result is ignored, because a fault may be injected into the next worker.
        (void)co_await gpu.async_replace();
        counts.ops.remove();
    }

    std::atomic<std::uint64_t> faults_{0};
    std::ptrdiff_t descriptors_ = 0;
};

} // namespace

std::unique_ptr<scenario> worker_scenario()
{
    return std::make_unique<isolated>();
}

} // namespace chaos

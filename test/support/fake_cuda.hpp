#ifndef COACCEL_TEST_SUPPORT_FAKE_CUDA_HPP
#define COACCEL_TEST_SUPPORT_FAKE_CUDA_HPP

#include "cuda/load/driver_api.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace test {

struct fake_cuda_settings {
    enum class mode {
        /// Work runs by itself, the streams interleaved at random.
        automatic,
        /// Work runs when the test says so, and when a blocking call needs it.
        stepped,
    };

    mode how = mode::automatic;
    std::uint64_t seed = 1;
    int devices = 1;
    std::string name = "Fake GPU";
    std::uint64_t total_memory = std::uint64_t(1) << 30;
    int driver_version = 13000;
    /// A stream with so many pieces of work would block whoever adds another.
    std::size_t launch_queue = 1024;
    /// Instead of the values of an H200.
    std::map<CUdevice_attribute, int> attributes{};
};

/// A CUDA driver in host memory, as strict as the real one is lax: whatever it would punish only now and then is a
/// violation here, each time.
///
/// One at a time in a process. Its functions may be called from any thread; its control functions too, but not from
/// kernels, where not said otherwise. The destructor fails the test when there were violations or leaks, unless the
/// test has looked at them itself.
///
/// Memory that was not written to reads as 0xff bytes, freed memory as 0xdd bytes.
class fake_cuda {
public:
    using settings = fake_cuda_settings;
    using mode = fake_cuda_settings::mode;

    struct launch {
        unsigned grid[3];
        unsigned block[3];
        unsigned shared_bytes;
    };

    using kernel = std::function<void(const launch&, void** arguments)>;

    struct stream_info {
        CUstream handle;
        int priority;
        unsigned flags;
        std::size_t pending;
    };

    explicit fake_cuda(const settings& s = {});
    fake_cuda(const fake_cuda&) = delete;
    fake_cuda& operator=(const fake_cuda&) = delete;
    ~fake_cuda();

    const coaccel::cuda::driver_api& api() const noexcept;

    /// A function for modules to have: every module has all of them.
    void add_kernel(std::string name, kernel k, std::vector<std::size_t> parameter_sizes);

    /// Puts a function on a stream, as a library of the vendor's would.
    void enqueue(CUstream s, std::function<void()> work);

    /// For libraries on top of the driver, with each of their calls: tells what the driver would, and counts it among
    /// the calls after death.
    CUresult library_call(std::string_view function);
    void complain(std::string violation);

    /// Whether [p, p + bytes) is memory that work may use at this moment; a violation if not. For kernels too.
    bool touch(const void* p, std::size_t bytes);

    // Stepping.

    /// Runs the next piece of work of the stream. False: there is none, or it has to wait.
    bool step(CUstream s);
    /// Runs whatever can be run, in an order that the seed decides; tells how much that was.
    std::size_t run_all();
    std::size_t pending(CUstream s) const;
    /// The streams there are, in the order of their making.
    std::vector<stream_info> streams() const;
    std::size_t events() const;

    // Delays.

    /// Work of the stream stays where it is until it is let go, also for blocking calls.
    void hold(CUstream s);
    void let_go(CUstream s);
    void hold_all(bool held);
    /// Holds the stream back behind the work it has, until `ready`, which is asked over and over and must not block.
    void block(CUstream s, std::function<bool()> ready);

    // Faults.

    /// The nth next call of the function, by the name it has in the manual, fails. A result that kills contexts on
    /// hardware kills here too.
    void fail(std::string_view function, CUresult result, int nth = 1);
    /// The nth next call and all after it fail, until `forgive`.
    void fail_from(std::string_view function, CUresult result, int nth = 1);
    /// Takes back what was to fail and has not yet.
    void forgive();
    /// From this on every call fails, no work runs and no host function is called. Also from a kernel, which is then
    /// the last piece of work. Returns when nothing runs any more.
    void kill(CUresult sticky);
    /// The nth next piece of work does that; a copy, a wait and the record of an event are pieces too.
    void kill_at(CUresult sticky, int nth);
    /// Host functions are not called, though their streams go on.
    void swallow_host_functions(bool swallow);

    // What happened.

    int calls(std::string_view function) const;
    /// All calls since the beginning.
    int calls() const;
    /// Calls on the dead context by threads that had been told of its death. Destroying the context, making another one
    /// current and asking for names and devices are not counted.
    int calls_after_death() const;
    /// Their names, in one line.
    std::string late_calls() const;
    bool dead() const;
    int host_functions_called() const;
    /// How many contexts are current on this thread, one above the other.
    std::size_t current_depth() const;
    /// Bytes of device and managed memory not freed yet, and of registered host memory.
    std::uint64_t allocated() const;
    std::uint64_t registered() const;

    std::vector<std::string> violations() const;
    /// What exists now and would be a leak at the end.
    std::vector<std::string> leaks() const;
    /// Violations and leaks, in one line; empty when all is well. A dead context leaks nothing.
    std::string verdict();

    /// The names of all functions, as `fail` and `calls` take them.
    static const std::vector<std::string_view>& function_names();

    struct state;

private:
    std::unique_ptr<state> state_;
};

} // namespace test

#endif

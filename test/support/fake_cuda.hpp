#ifndef COACCEL_TEST_SUPPORT_FAKE_CUDA_HPP
#define COACCEL_TEST_SUPPORT_FAKE_CUDA_HPP

#include "cuda/driver/driver_api.hpp"

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
        /// Work runs on its own, with the streams interleaved at random.
        automatic,
        /// Work runs when the test requests it, and when a blocking call needs it.
        stepped,
    };

    mode how = mode::automatic;
    std::uint64_t seed = 1;
    int devices = 1;
    std::string name = "Fake GPU";
    std::uint64_t total_memory = std::uint64_t(1) << 30;
    int driver_version = 13000;
    /// A call that adds to a stream with this many queued items would block.
    std::size_t launch_queue = 1024;
    /// Override the values of an H200.
    std::map<CUdevice_attribute, int> attributes{};
};

/// A CUDA driver in host memory. It is stricter than the real one: misuse that the real driver punishes only
/// occasionally is a violation here every time.
///
/// Only one may exist in a process at a time. The driver functions may be called from any thread. The control functions
/// too, but not from kernels unless documented. The destructor fails the test if there were violations or leaks that
/// the test has not examined itself.
///
/// Memory that was not written to reads as 0xff bytes, freed memory as 0xdd bytes.
///
/// Memory of cuMemCreate is that of a descriptor. A later fake in the process can import it, as another process would.
///
/// A stream in a capture records copies, memsets, kernels, host functions and the work of vendor libraries. Their
/// memory is checked twice: when they are recorded, and each time they run. A launched graph is one work item: its
/// commands run in the order in which they were recorded, with no other work in between. Allocating and freeing in a
/// capture, which the real driver records, is a violation.
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

    /// Adds a kernel; every module contains all kernels.
    void add_kernel(std::string name, kernel k, std::vector<std::size_t> parameter_sizes);

    /// Puts a function on a stream, as a vendor library would. A stream in a capture records it.
    CUresult enqueue(CUstream s, std::function<void()> work);

    /// Called by libraries on top of the driver in each of their calls: returns the result the driver would return, and
    /// counts calls after the death of the context.
    CUresult library_call(std::string_view function);
    void complain(std::string violation);

    /// Whether work may use the memory [p, p + bytes) at this moment; otherwise records a violation. Also callable from
    /// kernels.
    bool touch(const void* p, std::size_t bytes);
    /// Likewise, to write there. As on hardware, a write to read-only memory is no violation, but kills the context.
    bool touch_to_write(const void* p, std::size_t bytes);

    // Stepping.

    /// Runs the next work item of the stream. False: there is none, or it has to wait.
    bool step(CUstream s);
    /// Runs all runnable work, in an order determined by the seed; returns the number of items.
    std::size_t run_all();
    std::size_t pending(CUstream s) const;
    /// The existing streams, in the order of their creation.
    std::vector<stream_info> streams() const;
    std::size_t events() const;
    /// Graphs that were captured and not destroyed, and executable graphs that were not destroyed.
    std::size_t graphs() const;
    std::size_t executable_graphs() const;
    /// Number of launched graphs that have run to their end. Calls are counted by `calls`.
    int graph_launches() const;
    /// The calling thread's mode, as set by cuThreadExchangeStreamCaptureMode.
    CUstreamCaptureMode capture_mode() const;

    // Delays.

    /// Suspends the work of the stream until `let_go`, also for blocking calls.
    void hold(CUstream s);
    void let_go(CUstream s);
    void hold_all(bool held);
    /// Blocks the stream after its current work until `ready` returns true. `ready` is called repeatedly and must not
    /// block.
    void block(CUstream s, std::function<bool()> ready);

    // Faults.

    /// The nth next call of the function, by its name in the manual, fails. A result that kills contexts on hardware
    /// kills them here too. CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED and CUDA_ERROR_STREAM_CAPTURE_INVALIDATED also
    /// invalidate the captures that the calling thread has begun. A failing cuStreamEndCapture ends its capture.
    void fail(std::string_view function, CUresult result, int nth = 1);
    /// The nth next call and all after it fail, until `forgive`.
    void fail_from(std::string_view function, CUresult result, int nth = 1);
    /// Cancels planned failures that have not happened yet.
    void forgive();
    /// From now on every call fails, no work runs and no host function is called. May be called from a kernel, which is
    /// then the last work item. Returns when no work runs any more.
    void kill(CUresult sticky);
    /// Like `kill`, as after cudaDeviceReset: calls with a stream return CUDA_ERROR_INVALID_CONTEXT, others
    /// CUDA_ERROR_CONTEXT_IS_DESTROYED.
    void reset_context();
    /// Like `kill`, at the nth next work item; copies, waits and event records are items too.
    void kill_at(CUresult sticky, int nth);
    /// The capture of the stream becomes invalid, as by a call of other code in the process.
    void invalidate_capture(CUstream s);
    /// Host functions are not called, but their streams continue.
    void swallow_host_functions(bool swallow);

    // Observation.

    int calls(std::string_view function) const;
    /// The total number of calls.
    int calls() const;
    /// Calls on the dead context by threads to which a call had already reported its death. Releasing the context,
    /// making another one current, changing the capture mode, and querying names and devices are not counted.
    int calls_after_death() const;
    /// The names of these calls, in one line.
    std::string late_calls() const;
    bool dead() const;
    int host_functions_called() const;
    /// The depth of this thread's stack of current contexts.
    std::size_t current_depth() const;
    /// Null: none.
    CUcontext current_context() const;
    /// Bytes of device and managed memory not freed yet, and of registered host memory.
    std::uint64_t allocated() const;
    std::uint64_t registered() const;

    std::vector<std::string> violations() const;
    /// Objects that exist now and would be leaks at the end.
    std::vector<std::string> leaks() const;
    /// Violations and leaks, in one line; empty if there are none. A dead context leaks nothing.
    std::string verdict();

    /// The names of all functions, as `fail` and `calls` take them.
    static const std::vector<std::string_view>& function_names();

    struct state;

private:
    std::unique_ptr<state> state_;
};

} // namespace test

#endif

#ifndef COACCEL_TEST_SUPPORT_FAKE_CUDA_STATE_HPP
#define COACCEL_TEST_SUPPORT_FAKE_CUDA_STATE_HPP

#include "posix/unique_fd.hpp"
#include "support/fake_cuda.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <set>
#include <thread>

namespace test {

#define COACCEL_FAKE_ENUMERATOR(function) fn_##function,
enum fake_function : int {
    COACCEL_CUDA_DRIVER_FUNCTIONS(COACCEL_FAKE_ENUMERATOR)
        COACCEL_CUDA_OPTIONAL_DRIVER_FUNCTIONS(COACCEL_FAKE_ENUMERATOR) fn_cuMemPrefetchAsync,
    fn_cuMemAdvise,
    fn_cuStreamGetCaptureInfo,
    fn_cuEventElapsedTime,
    fn_count
};
#undef COACCEL_FAKE_ENUMERATOR

/// The state of the fake driver. `mutex` guards all of it. Functions are called with the mutex locked, unless they are
/// documented to lock it.
struct fake_cuda::state {
    struct capture;
    /// For each stream of a capture, the number of its steps that come before a point of the capture.
    using capture_steps = std::map<CUstream, int>;

    struct event {
        CUcontext context = nullptr;
        std::uint64_t issued = 0;
        std::uint64_t completed = 0;
        bool timed = false;
        /// When the latest record was reached.
        std::chrono::steady_clock::time_point at{};
        /// Set while the latest record belongs to a capture.
        std::shared_ptr<capture> captured;
        capture_steps steps;
    };

    struct item {
        std::function<void()> run;
        /// Empty: always ready.
        std::function<bool()> ready;
        /// Set for kernels and host functions, which may block.
        bool unlocked = false;
        /// `ready` must be polled: nothing notifies when it changes.
        bool polled = false;
        /// Set in a graph.
        CUgraphNode node = nullptr;
        /// Set for a kernel in a graph.
        CUfunction function = nullptr;
    };

    struct stream {
        CUstream handle = nullptr;
        CUcontext context = nullptr;
        int priority = 0;
        unsigned flags = 0;
        std::deque<item> items;
        int credit = 0;
        bool held = false;
        bool destroyed = false;
        /// Set while the stream is in a capture.
        std::shared_ptr<state::capture> capture;
        capture_steps steps;
        /// Its last node in the capture.
        CUgraphNode last_node = nullptr;
    };

    struct capture {
        CUcontext context = nullptr;
        CUstream origin = nullptr;
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        std::thread::id thread;
        bool invalid = false;
        bool ended = false;
        /// In the order of the calls, which respects all dependencies.
        std::vector<item> items;
    };

    struct executable {
        CUcontext context = nullptr;
        std::vector<item> items;
        /// Launches of one executable graph run one after another, also on different streams.
        std::uint64_t issued = 0;
        std::uint64_t completed = 0;
    };

    struct pool {
        std::uint64_t limit = 0;
        std::uint64_t used = 0;
        std::uint64_t used_high = 0;
        std::uint64_t reserved = 0;
        std::uint64_t reserved_high = 0;
        std::uint64_t threshold = 0;
        bool destroyed = false;
    };

    struct block {
        char* memory = nullptr;
        std::size_t bytes = 0;
        /// In stream order: the allocation has taken effect; the free was requested; the free has taken effect.
        bool live = false;
        bool condemned = false;
        bool freed = false;
        /// Null: managed memory.
        std::shared_ptr<state::pool> from;
        CUcontext context = nullptr;
    };

    /// Memory of cuMemCreate. It outlives the fake as long as another process or fake has a descriptor of it.
    struct allocation {
        coaccel::detail::unique_fd memory;
        std::size_t bytes = 0;
        int device = 0;
        bool exportable = false;
    };

    /// A range of cuMemAddressReserve.
    struct address_range {
        std::size_t bytes = 0;
        /// Null: nothing is mapped.
        std::shared_ptr<allocation> mapped{};
        CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    };

    struct registration {
        std::size_t bytes = 0;
        CUcontext context = nullptr;
    };

    struct function {
        CUmodule module = nullptr;
        std::string name;
        std::map<CUfunction_attribute, int> attributes;
    };

    struct kernel_entry {
        kernel run;
        std::vector<std::size_t> sizes;
    };

    struct plan {
        CUresult result;
        int countdown;
        bool lasting = false;
    };

    state(const settings& s);
    /// Ends the thread and frees the memory.
    void stop();

    // Work.
    void work();
    stream* pick();
    bool polling() const;
    /// Makes a context current on this thread; `leave` restores the previous one.
    void enter(CUcontext c);
    void leave();
    bool runnable(const stream& s) const;
    bool idle(const stream& s) const { return s.items.empty() && active != &s; }
    /// Queues the work, or records it if the stream is in a capture.
    CUresult push(stream& s, std::function<void()> run, bool unlocked = false);
    stream* find_stream(CUstream s, const char* where);
    std::shared_ptr<event> find_event(CUevent e, const char* where);
    template <class Done>
    CUresult block_until(Done done)
    {
        ++draining;
        changed.notify_all();
        changed.wait(mutex, [&] { return dead != CUDA_SUCCESS || done(); });
        --draining;
        changed.notify_all();
        for (auto& [handle, p] : pools)
            trim(*p, p->threshold);
        return dead;
    }
    void die(CUresult sticky);

    // Captures.
    /// Applies to calls that may wait for other work or invalidate it: such a call fails and ends the captures that
    /// the calling thread's mode protects.
    CUresult check_captures();
    /// For a call that no capture of the stream can contain. Success: the stream is not in a capture.
    static CUresult check_not_captured(stream& s);
    /// For a query of the event's progress, which an event recorded in a capture does not have.
    static CUresult check_not_captured(const event& e);
    /// `which`: the captures to invalidate.
    template <class Which>
    bool invalidate_captures(Which which)
    {
        bool any = false;
        for (auto& [handle, s] : streams)
            if (s->capture && which(*s->capture))
                any = s->capture->invalid = true;
        return any;
    }
    void end_capture(const std::shared_ptr<capture>& c);
    static CUresult record_in_capture(stream& s, event& e);
    static CUresult wait_in_capture(stream& s, const event& e);

    // Memory.
    char* make_block(std::size_t bytes, std::shared_ptr<pool> from);
    block* find_block(const void* p);
    enum class use { read, write };
    bool check_device(const char* where, CUdeviceptr p, std::size_t bytes, bool running, use how = use::read);
    /// The range that contains the address; the end if there is none.
    std::map<char*, address_range>::iterator find_range(CUdeviceptr p);
    bool check_range(const char* where, CUdeviceptr p, std::size_t bytes, bool running, use how);
    /// The bytes of all memory that has a handle or a mapping.
    std::uint64_t allocation_bytes() const;
    bool check_host(const char* where, const void* p, std::size_t bytes);
    void give_life(const char* start);
    void bury(const char* start, const char* where);
    void trim(pool& p, std::uint64_t keep);
    void add_copy_kernel();
    std::uint64_t free_memory() const;

    // Contexts and violations.
    CUcontext current() const;
    void violate(std::string what);
    /// Handles a call on the dead context.
    CUresult refuse(std::string_view function);
    std::vector<std::string> leaks() const;
    void forget_context(CUcontext c);
    template <class Handle>
    Handle make_handle()
    {
        return reinterpret_cast<Handle>(next_handle += 16);
    }

    void fill(coaccel::cuda::driver_api& table);
    int attribute(CUdevice_attribute a) const;

    // The driver's functions.
    CUresult init(unsigned flags);
    CUresult driver_version(int* version);
    CUresult device_count(int* count);
    CUresult device_get(CUdevice* device, int ordinal);
    CUresult device_name(char* name, int length, CUdevice device);
    CUresult device_attribute(int* value, CUdevice_attribute a, CUdevice device);
    CUresult device_total(std::size_t* bytes, CUdevice device);
    CUresult error_name(CUresult r, const char** text);
    CUresult error_string(CUresult r, const char** text);
    CUresult context_retain(CUcontext* primary, CUdevice device);
    CUresult context_release(CUdevice device);
    CUresult context_push(CUcontext c);
    CUresult context_pop(CUcontext* popped);
    CUresult context_set(CUcontext c);
    CUresult priority_range(int* least, int* greatest);
    CUresult stream_create(CUstream* made, unsigned flags, int priority);
    CUresult stream_destroy(CUstream s);
    CUresult stream_query(CUstream s);
    CUresult stream_synchronize(CUstream s);
    CUresult stream_wait(CUstream s, CUevent e, unsigned flags);
    CUresult begin_capture(CUstream s, CUstreamCaptureMode mode);
    CUresult end_stream_capture(CUstream s, CUgraph* made);
    CUresult is_capturing(CUstream s, CUstreamCaptureStatus* status);
    CUresult exchange_capture_mode(CUstreamCaptureMode* mode);
    CUresult graph_instantiate(CUgraphExec* made, CUgraph g, unsigned long long flags);
    CUresult graph_upload(CUgraphExec x, CUstream s);
    CUresult graph_launch(CUgraphExec x, CUstream s);
    CUresult graph_nodes(CUgraph g, CUgraphNode* nodes, std::size_t* count);
    CUresult kernel_node_set(CUgraphExec x, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* values);
    CUresult capture_info(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                          const CUgraphNode** nodes, const CUgraphEdgeData** edges, std::size_t* count);
    CUresult graph_exec_destroy(CUgraphExec x);
    CUresult graph_destroy(CUgraph g);
    CUresult event_create(CUevent* made, unsigned flags);
    CUresult event_destroy(CUevent e);
    CUresult event_record(CUevent e, CUstream s);
    CUresult event_query(CUevent e);
    CUresult event_synchronize(CUevent e);
    CUresult event_elapsed_time(float* milliseconds, CUevent start, CUevent stop);
    CUresult host_function(CUstream s, CUhostFn f, void* argument);
    CUresult memory_info(std::size_t* free, std::size_t* total);
    CUresult pool_create(CUmemoryPool* made, const CUmemPoolProps* properties);
    CUresult pool_destroy(CUmemoryPool p);
    CUresult pool_trim(CUmemoryPool p, std::size_t keep);
    CUresult pool_set(CUmemoryPool p, CUmemPool_attribute a, void* value);
    CUresult pool_get(CUmemoryPool p, CUmemPool_attribute a, void* value);
    CUresult allocate_async(CUdeviceptr* made, std::size_t bytes, CUmemoryPool p, CUstream s);
    CUresult free_async(CUdeviceptr p, CUstream s);
    CUresult allocate_managed(CUdeviceptr* made, std::size_t bytes, unsigned flags);
    CUresult free(CUdeviceptr p);
    CUresult host_register(void* p, std::size_t bytes, unsigned flags);
    CUresult host_unregister(void* p);
    CUresult pointer_attributes(unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr p);
    CUresult copy_to_device(CUdeviceptr to, const void* from, std::size_t bytes, CUstream s);
    CUresult copy_to_host(void* to, CUdeviceptr from, std::size_t bytes, CUstream s);
    CUresult copy_on_device(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream s);
    CUresult set8(CUdeviceptr to, unsigned char value, std::size_t count, CUstream s);
    CUresult set16(CUdeviceptr to, unsigned short value, std::size_t count, CUstream s);
    CUresult set32(CUdeviceptr to, unsigned value, std::size_t count, CUstream s);
    CUresult set32_rows(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width, std::size_t height,
                        CUstream s);
    CUresult prefetch(CUdeviceptr p, std::size_t bytes, CUmemLocation where, unsigned flags, CUstream s);
    CUresult advise(CUdeviceptr p, std::size_t bytes, CUmem_advise what, CUmemLocation where);
    CUresult granularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                         CUmemAllocationGranularity_flags option);
    CUresult handle_properties(CUmemAllocationProp* properties, CUmemGenericAllocationHandle h);
    CUresult create_memory(CUmemGenericAllocationHandle* made, std::size_t bytes, const CUmemAllocationProp* properties,
                           unsigned long long flags);
    CUresult release_memory(CUmemGenericAllocationHandle h);
    CUresult reserve_addresses(CUdeviceptr* made, std::size_t bytes, std::size_t alignment, CUdeviceptr wish,
                               unsigned long long flags);
    CUresult free_addresses(CUdeviceptr p, std::size_t bytes);
    CUresult map_memory(CUdeviceptr p, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle h,
                        unsigned long long flags);
    CUresult unmap_memory(CUdeviceptr p, std::size_t bytes);
    CUresult set_access(CUdeviceptr p, std::size_t bytes, const CUmemAccessDesc* how_much, std::size_t count);
    CUresult export_memory(void* descriptor, CUmemGenericAllocationHandle h, CUmemAllocationHandleType type,
                           unsigned long long flags);
    CUresult import_memory(CUmemGenericAllocationHandle* made, void* descriptor, CUmemAllocationHandleType type);
    CUresult module_load(CUmodule* made, const void* image);
    CUresult module_unload(CUmodule m);
    CUresult module_function(CUfunction* found, CUmodule m, const char* name);
    CUresult function_get(int* value, CUfunction_attribute a, CUfunction f);
    CUresult function_set(CUfunction f, CUfunction_attribute a, int value);
    CUresult parameter_info(CUfunction f, std::size_t index, std::size_t* offset, std::size_t* size);
    CUresult launch_kernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                           unsigned shared, CUstream s, void** parameters, void** extra);
    CUresult best_block(int* grid, int* block, CUfunction f, CUoccupancyB2DSize shared_of, std::size_t shared,
                        int limit);
    CUresult active_blocks(int* count, CUfunction f, int block, std::size_t shared);

    /// A kernel with a copy of its arguments.
    CUresult make_launch(CUfunction f, const launch& how, void** parameters, void** extra, std::function<void()>& run);
    /// The node of this handle in an executable graph. Reports one that is in no graph.
    item* find_node(CUgraphExec x, CUgraphNode node, const char* where);

    template <class T>
    CUresult set(const char* where, CUdeviceptr to, T value, std::size_t count, CUstream s);
    bool no_managed(const char* where, CUdeviceptr p, std::size_t bytes);

    /// Identifies this fake, so that contexts that were current on a thread under an earlier fake do not count.
    std::uint64_t identity;
    settings how;
    coaccel::cuda::driver_api table;

    mutable std::mutex mutex;
    std::condition_variable_any changed;
    std::mt19937_64 random;
    std::uintptr_t next_handle = 0xfa4e0000;

    /// The primary context of a device. Its handle is the same each time it is made, as with the real driver.
    struct primary_context {
        CUcontext handle = nullptr;
        int retained = 0;
    };

    std::map<CUdevice, primary_context> primaries;
    /// The primary contexts that are retained.
    std::set<CUcontext> contexts;
    std::map<CUstream, std::unique_ptr<stream>> streams;
    std::map<CUevent, std::shared_ptr<event>> all_events;
    std::map<CUmemoryPool, std::shared_ptr<pool>> pools;
    std::map<const char*, block, std::less<>> blocks;
    std::deque<const char*> buried;
    std::size_t buried_bytes = 0;
    std::uint64_t managed_bytes = 0;
    std::map<CUmemGenericAllocationHandle, std::shared_ptr<allocation>> allocations;
    std::map<char*, address_range> ranges;
    std::map<const char*, registration, std::less<>> registrations;
    std::map<CUmodule, CUcontext> modules;
    std::map<CUfunction, function> functions;
    std::map<std::string, kernel_entry, std::less<>> kernels;
    std::map<CUgraph, std::vector<item>> graphs;
    std::map<CUgraphExec, std::shared_ptr<executable>> executables;
    int graph_launches = 0;

    const stream* active = nullptr;
    int draining = 0;
    /// Contexts that threads have pushed and not yet popped.
    int entered = 0;
    int fuse = 0;
    CUresult fate = CUDA_SUCCESS;
    bool all_held = false;
    bool stopping = false;
    bool swallow = false;
    CUresult dead = CUDA_SUCCESS;

    std::map<int, std::vector<plan>> plans;
    /// The planned result of the call of cuStreamEndCapture in progress.
    CUresult planned_end = CUDA_SUCCESS;
    std::array<int, fn_count> counts{};
    std::vector<std::string> late_calls;
    int callbacks = 0;
    std::vector<std::string> complaints;
    bool looked_at = false;

    std::thread thread;
};

/// The fake that the functions of the table use.
extern std::atomic<fake_cuda::state*> current_fake;

/// The contexts that are current in a thread, the last one on top. Without a destructor: threads that wait for ever in
/// an abandoned context never end, and the check for leaks does not always see their thread-local variables.
class context_stack {
public:
    bool empty() const noexcept { return size_ == 0; }
    std::size_t size() const noexcept { return size_; }
    CUcontext& back() noexcept { return all_[size_ - 1]; }
    CUcontext back() const noexcept { return all_[size_ - 1]; }
    void push_back(CUcontext c) { all_.at(size_++) = c; }
    void pop_back() noexcept { --size_; }

private:
    std::array<CUcontext, 16> all_{};
    std::size_t size_ = 0;
};

/// The fake's state of a thread.
struct fake_thread {
    std::uint64_t identity = 0;
    context_stack current;
    bool told = false;
    bool in_callback = false;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

    /// The state of the calling thread for this fake.
    static fake_thread& of(const fake_cuda::state& s);
};

} // namespace test

#endif

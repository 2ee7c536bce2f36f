// The kernels of ops on rows. A row that fits into the registers of a warp is computed by a warp, one that fits into those
// of a block by a block, so that each element is loaded once. A block computes other rows, and those that are not whole
// pieces of 16 bytes, by loading them several times. Sums are always added in the same order. The number of threads is
// a multiple of 32.

namespace coaccel_prim {

template <class Function, class T>
struct biased {
    COACCEL_PRIM_FUNCTION T of(T x, T bias)
    {
        return computed<T>::store(Function::of(computed<T>::load(x) + computed<T>::load(bias)));
    }
};

template <class Function, class T>
COACCEL_PRIM_KERNEL bias_activation(loops<3> l, const T* x, const T* bias, T* y)
{
    map_each(l, map_two<biased<Function, T>, T, T, T>{{}, x, bias, y});
}

struct adding {
    template <class S>
    COACCEL_PRIM_FUNCTION S of(S a, S b)
    {
        return a + b;
    }
};

struct choosing_greater {
    template <class S>
    COACCEL_PRIM_FUNCTION S of(S a, S b)
    {
        return greater(a, b);
    }
};

/// Threads that compute a row together: a warp or the block.
template <bool Warp>
struct row_group;

template <>
struct row_group<true> {
    COACCEL_PRIM_FUNCTION u32 size() { return 32; }
    COACCEL_PRIM_FUNCTION u32 rank() { return threadIdx.x % 32; }
    // The rows of few go to different blocks.
    COACCEL_PRIM_FUNCTION u64 first_row() { return u64(threadIdx.x / 32) * gridDim.x + blockIdx.x; }
    COACCEL_PRIM_FUNCTION u64 row_step() { return u64(gridDim.x) * (blockDim.x / 32); }

    /// Combines the values of all threads; each gets the result.
    template <class Combine, class S>
    COACCEL_PRIM_FUNCTION S combined(S value)
    {
        COACCEL_PRIM_UNROLL
        for (u32 distance = 16; distance > 0; distance /= 2)
            value = Combine::of(value, value_of(value, threadIdx.x % 32 ^ distance));
        return value;
    }
};

template <>
struct row_group<false> {
    COACCEL_PRIM_FUNCTION u32 size() { return blockDim.x; }
    COACCEL_PRIM_FUNCTION u32 rank() { return threadIdx.x; }
    COACCEL_PRIM_FUNCTION u64 first_row() { return blockIdx.x; }
    COACCEL_PRIM_FUNCTION u64 row_step() { return gridDim.x; }

    template <class Combine, class S>
    COACCEL_PRIM_FUNCTION S combined(S value)
    {
        __shared__ S warps[8];
        value = row_group<true>::combined<Combine>(value);
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = value;
        __syncthreads();
        S all = warps[0];
        for (u32 w = 1; w < blockDim.x / 32; ++w)
            all = Combine::of(all, warps[w]);
        // The next call writes there.
        __syncthreads();
        return all;
    }
};

/// What a thread has of a row of adjacent elements: pieces that are loaded or stored at a time.
template <class Group, class T>
struct row_part {
    /// What `each` changes is there in the next call.
    static constexpr bool kept = true;
    typedef typename computed<T>::type C;
    typedef pack<T> piece;
    static constexpr u32 size = piece::size;
    static constexpr u32 pieces = (sizeof(T) == 8 ? 16 : 32) / size;
    /// The elements that all threads have together.
    COACCEL_PRIM_FUNCTION u64 room() { return u64(Group::size()) * pieces * size; }

    C of[pieces * size];
    T* y;
    /// A multiple of size.
    u32 n;

    COACCEL_PRIM_MEMBER u32 place(u32 p) const { return (p * Group::size() + Group::rank()) * size; }

    /// Calls `f` with the number of each piece and its place in the row. All threads of the group skip the same ones
    /// behind the end.
    template <class F>
    COACCEL_PRIM_MEMBER void each_piece(const F& f) const
    {
        COACCEL_PRIM_UNROLL
        for (u32 p = 0; p < pieces; ++p) {
            if (p * Group::size() * size >= n)
                break;
            if (place(p) < n)
                f(p, place(p));
        }
    }

    COACCEL_PRIM_MEMBER row_part(const T* x, T* to, u64 count) : y(to), n(static_cast<u32>(count))
    {
        piece loaded[pieces];
        each_piece([&](u32 p, u32 at) { loaded[p] = *reinterpret_cast<const piece*>(x + at); });
        each_piece([&](u32 p, u32) {
            COACCEL_PRIM_UNROLL
            for (u32 k = 0; k < size; ++k)
                of[p * size + k] = computed<T>::load(loaded[p].of[k]);
        });
    }

    /// Calls `f` with each element and its place in the row.
    template <class F>
    COACCEL_PRIM_MEMBER void each(const F& f)
    {
        each_piece([&](u32 p, u32 at) {
            COACCEL_PRIM_UNROLL
            for (u32 k = 0; k < size; ++k)
                f(of[p * size + k], at + k);
        });
    }

    /// The same, and stores what `f` has made of it.
    template <class F>
    COACCEL_PRIM_MEMBER void change(const F& f)
    {
        each_piece([&](u32 p, u32 at) {
            piece made;
            COACCEL_PRIM_UNROLL
            for (u32 k = 0; k < size; ++k) {
                f(of[p * size + k], at + k);
                made.of[k] = computed<T>::store(of[p * size + k]);
            }
            *reinterpret_cast<piece*>(y + at) = made;
        });
    }
};

/// A row whose elements are loaded each time, at a distance from each other.
template <class T>
struct streamed_row {
    static constexpr bool kept = false;
    typedef typename computed<T>::type C;
    const T* x;
    T* y;
    u64 n;
    u64 distance;

    /// Calls `f` with each element and its place in the row.
    template <class F>
    COACCEL_PRIM_MEMBER void each(const F& f) const
    {
        for (u64 k = threadIdx.x; k < n; k += blockDim.x) {
            C value = computed<T>::load(x[k * distance]);
            f(value, k);
        }
    }
    /// The same, and stores what `f` has made of it.
    template <class F>
    COACCEL_PRIM_MEMBER void change(const F& f) const
    {
        for (u64 k = threadIdx.x; k < n; k += blockDim.x) {
            C value = computed<T>::load(x[k * distance]);
            f(value, k);
            y[k * distance] = computed<T>::store(value);
        }
    }
};

/// Computes rows of whole pieces in registers. Returns false if they are too long for the group. `Compute` has a function
/// template `of<Group>(row)`, which calls `row.change` at the end.
template <class Group, class T, class Compute>
COACCEL_PRIM_FUNCTION bool try_kept_rows(u64 rows, u64 n, const T* x, T* y, const Compute& compute)
{
    if (n > row_part<Group, T>::room())
        return false;
    for (u64 row = Group::first_row(); row < rows; row += Group::row_step()) {
        row_part<Group, T> own(x + row * n, y + row * n, n);
        compute.template of<Group>(own);
    }
    return true;
}

template <class T, class Compute>
COACCEL_PRIM_FUNCTION void compute_rows(u64 outer, u64 n, u64 inner, const T* x, T* y, const Compute& compute)
{
    typedef pack<T> piece;
    const bool in_pieces = inner == 1 && n % piece::size == 0 &&
                           (reinterpret_cast<u64>(x) | reinterpret_cast<u64>(y)) % sizeof(piece) == 0;
    if (in_pieces && (try_kept_rows<row_group<true>>(outer, n, x, y, compute) ||
                      try_kept_rows<row_group<false>>(outer, n, x, y, compute)))
        return;
    for (u64 row = blockIdx.x; row < outer * inner; row += gridDim.x) {
        const u64 first = row / inner * n * inner + row % inner;
        streamed_row<T> own = {x + first, y + first, n, inner};
        compute.template of<row_group<false>>(own);
    }
}

/// The result for an element, with a number that is computed from the sum of e^(x - most) for the row.
struct softmax_value {
    COACCEL_PRIM_FUNCTION double of_row(double sum) { return 1 / sum; }
    /// What is kept of an element when the sum is computed.
    template <class C>
    COACCEL_PRIM_FUNCTION C kept(C, C power)
    {
        return power;
    }
    template <bool Kept, class C, class S>
    COACCEL_PRIM_FUNCTION C of(C x, C most, S factor)
    {
        return (Kept ? x : exp(x - most)) * static_cast<C>(factor);
    }
};

struct log_softmax_value {
    COACCEL_PRIM_FUNCTION double of_row(double sum) { return log(sum); }
    template <class C>
    COACCEL_PRIM_FUNCTION C kept(C x, C)
    {
        return x;
    }
    template <bool Kept, class C, class S>
    COACCEL_PRIM_FUNCTION C of(C x, C most, S logarithm)
    {
        return static_cast<C>(static_cast<S>(x) - static_cast<S>(most) - logarithm);
    }
};

template <class Value, class T>
struct computed_softmax {
    template <class Group, class Row>
    __device__ void of(Row& row) const
    {
        typedef typename computed<T>::type C;
        typedef typename computed<T>::sum S;
        C most = static_cast<C>(float_of(0xff800000u));
        row.each([&](C& x, u64) { most = greater(most, x); });
        most = Group::template combined<choosing_greater>(most);
        S sum = 0;
        row.each([&](C& x, u64) {
            const C power = exp(x - most);
            sum += static_cast<S>(power);
            x = Value::kept(x, power);
        });
        const S number = static_cast<S>(Value::of_row(Group::template combined<adding>(sum)));
        row.change([&](C& x, u64) { x = Value::template of<Row::kept>(x, most, number); });
    }
};

template <class Value, class T>
COACCEL_PRIM_KERNEL_OF(3)
softmax(u64 outer, u64 n, u64 inner, const T* x, T* y)
{
    compute_rows(outer, n, inner, x, y, computed_softmax<Value, T>());
}

template <class T>
struct computed_layer_norm {
    u64 columns;
    const T* scale;
    const T* shift;
    double epsilon;

    template <class Group, class Row>
    __device__ void of(Row& row) const
    {
        typedef typename computed<T>::type C;
        typedef typename computed<T>::sum S;
        S sum = 0;
        row.each([&](C& x, u64) { sum += static_cast<S>(x); });
        const S mean = Group::template combined<adding>(sum) / static_cast<S>(columns);
        sum = 0;
        row.each([&](C& x, u64) {
            const S distance = static_cast<S>(x) - mean;
            sum += distance * distance;
        });
        const S variance = Group::template combined<adding>(sum) / static_cast<S>(columns);
        const S factor = S(1) / sqrt(variance + static_cast<S>(epsilon));
        row.change([&](C& x, u64 k) {
            const S v = (static_cast<S>(x) - mean) * factor;
            x = static_cast<C>(v * static_cast<S>(computed<T>::load(scale[k])) +
                               static_cast<S>(computed<T>::load(shift[k])));
        });
    }
};

template <class T>
COACCEL_PRIM_KERNEL_OF(2)
layer_norm(u64 rows, u64 columns, const T* x, const T* scale, const T* shift, T* y, double epsilon)
{
    compute_rows(rows, columns, 1, x, y, computed_layer_norm<T>{columns, scale, shift, epsilon});
}

template <class T>
struct computed_rms_norm {
    u64 columns;
    const T* scale;
    double epsilon;

    template <class Group, class Row>
    __device__ void of(Row& row) const
    {
        typedef typename computed<T>::type C;
        typedef typename computed<T>::sum S;
        S sum = 0;
        row.each([&](C& x, u64) { sum += static_cast<S>(x) * static_cast<S>(x); });
        const S mean = Group::template combined<adding>(sum) / static_cast<S>(columns);
        const S factor = S(1) / sqrt(mean + static_cast<S>(epsilon));
        row.change([&](C& x, u64 k) {
            x = static_cast<C>(static_cast<S>(x) * factor * static_cast<S>(computed<T>::load(scale[k])));
        });
    }
};

template <class T>
COACCEL_PRIM_KERNEL_OF(3)
rms_norm(u64 rows, u64 columns, const T* x, const T* scale, T* y, double epsilon)
{
    compute_rows(rows, columns, 1, x, y, computed_rms_norm<T>{columns, scale, epsilon});
}

} // namespace coaccel_prim

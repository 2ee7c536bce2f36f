// The kernels of ops on rows. A block computes a row at a time; its threads add what they have in shared memory, always
// in the same order. The number of threads is a power of two, at most 256.

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

/// Combines the values of all threads of the block; each gets the result.
template <class Combine, class S>
COACCEL_PRIM_FUNCTION S combined(S value)
{
    __shared__ S parts[256];
    parts[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            parts[threadIdx.x] = Combine::of(parts[threadIdx.x], parts[threadIdx.x + half]);
        __syncthreads();
    }
    const S all = parts[0];
    // The next call writes there.
    __syncthreads();
    return all;
}

struct softmax_value {
    template <class C, class S>
    COACCEL_PRIM_FUNCTION S of(C x, C most, S sum)
    {
        return static_cast<S>(exp(x - most)) / sum;
    }
};

struct log_softmax_value {
    template <class C, class S>
    COACCEL_PRIM_FUNCTION S of(C x, C most, S sum)
    {
        return static_cast<S>(x) - static_cast<S>(most) - log(sum);
    }
};

template <class Value, class T>
COACCEL_PRIM_KERNEL softmax(u64 outer, u64 n, u64 inner, const T* x, T* y)
{
    typedef typename computed<T>::type C;
    typedef typename computed<T>::sum S;
    for (u64 row = blockIdx.x; row < outer * inner; row += gridDim.x) {
        const u64 first = row / inner * n * inner + row % inner;
        C most = static_cast<C>(float_of(0xff800000u));
        for (u64 k = threadIdx.x; k < n; k += blockDim.x)
            most = greater(most, computed<T>::load(x[first + k * inner]));
        most = combined<choosing_greater>(most);
        S sum = 0;
        for (u64 k = threadIdx.x; k < n; k += blockDim.x)
            sum += static_cast<S>(exp(computed<T>::load(x[first + k * inner]) - most));
        sum = combined<adding>(sum);
        for (u64 k = threadIdx.x; k < n; k += blockDim.x)
            y[first + k * inner] =
                computed<T>::store(static_cast<C>(Value::of(computed<T>::load(x[first + k * inner]), most, sum)));
    }
}

template <class T>
COACCEL_PRIM_KERNEL layer_norm(u64 rows, u64 columns, const T* x, const T* scale, const T* shift, T* y, double epsilon)
{
    typedef typename computed<T>::type C;
    typedef typename computed<T>::sum S;
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* from = x + row * columns;
        T* to = y + row * columns;
        S sum = 0;
        for (u64 k = threadIdx.x; k < columns; k += blockDim.x)
            sum += static_cast<S>(computed<T>::load(from[k]));
        const S mean = combined<adding>(sum) / static_cast<S>(columns);
        sum = 0;
        for (u64 k = threadIdx.x; k < columns; k += blockDim.x) {
            const S distance = static_cast<S>(computed<T>::load(from[k])) - mean;
            sum += distance * distance;
        }
        const S variance = combined<adding>(sum) / static_cast<S>(columns);
        const S factor = S(1) / sqrt(variance + static_cast<S>(epsilon));
        for (u64 k = threadIdx.x; k < columns; k += blockDim.x) {
            const S v = (static_cast<S>(computed<T>::load(from[k])) - mean) * factor;
            to[k] = computed<T>::store(static_cast<C>(v * static_cast<S>(computed<T>::load(scale[k])) +
                                                      static_cast<S>(computed<T>::load(shift[k]))));
        }
    }
}

template <class T>
COACCEL_PRIM_KERNEL rms_norm(u64 rows, u64 columns, const T* x, const T* scale, T* y, double epsilon)
{
    typedef typename computed<T>::type C;
    typedef typename computed<T>::sum S;
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* from = x + row * columns;
        T* to = y + row * columns;
        S sum = 0;
        for (u64 k = threadIdx.x; k < columns; k += blockDim.x) {
            const S v = static_cast<S>(computed<T>::load(from[k]));
            sum += v * v;
        }
        const S mean = combined<adding>(sum) / static_cast<S>(columns);
        const S factor = S(1) / sqrt(mean + static_cast<S>(epsilon));
        for (u64 k = threadIdx.x; k < columns; k += blockDim.x)
            to[k] = computed<T>::store(static_cast<C>(static_cast<S>(computed<T>::load(from[k])) * factor *
                                                      static_cast<S>(computed<T>::load(scale[k]))));
    }
}

} // namespace coaccel_prim

"""Impact of two balls, without friction: an impulse along the line of centres.

With d = x_i - x_j, n = d / |d|, w = n.(v_i - v_j) < 0 and the reduced mass m = m_i m_j / (m_i + m_j), the impulse

    J = (1 + c) m w                                                         [N s]
    v_i' = v_i - J n / m_i,     v_j' = v_j + J n / m_j                      [m/s]

c restitution [1]: n.(v_i' - v_j') = -c w. Adjoint, for g = adj_v_i', h = adj_v_j', z = h / m_j - g / m_i:

    adj_J = n.z     adj_w = (1 + c) m adj_J     adj_n = J z + adj_w (v_i - v_j)
    adj_v_i = g + adj_w n      adj_v_j = h - adj_w n     adj_x_i = -adj_x_j = (adj_n - n (n.adj_n)) / |d|
    adj_c = m w adj_J          adj_m_i = J n.g / m_i^2 + (1 + c) w adj_J (m_j / (m_i + m_j))^2
                               adj_m_j = -J n.h / m_j^2 + (1 + c) w adj_J (m_i / (m_i + m_j))^2

These are derivatives at a fixed time; time_of_impact.py adds the dependence of that time on the state. Source: Newton's
law of restitution and the balance of momentum (Goldsmith 1960, Impact, chapter 1).
"""

from simphys.numerics.element import element


@element
def impact(x_i, v_i, x_j, v_j, m_i, m_j, c):
    d = x_i - x_j
    n = d / d.norm()
    J = (1 + c) * n.dot(v_i - v_j) * (m_i * m_j / (m_i + m_j))
    return v_i - (J / m_i) * n, v_j + (J / m_j) * n


@impact.adjoint
def adj_impact(x_i, v_i, x_j, v_j, m_i, m_j, c, adj_v_i, adj_v_j):
    d = x_i - x_j
    distance = d.norm()
    n = d / distance
    w, m = n.dot(v_i - v_j), m_i * m_j / (m_i + m_j)
    J = (1 + c) * m * w
    z = adj_v_j / m_j - adj_v_i / m_i
    adj_J = n.dot(z)
    adj_w = (1 + c) * m * adj_J
    adj_n = J * z + adj_w * (v_i - v_j)
    adj_m = (1 + c) * w * adj_J / ((m_i + m_j) * (m_i + m_j))
    adj_d = (adj_n - n.dot(adj_n) * n) / distance
    adj_m_i = J * n.dot(adj_v_i) / (m_i * m_i) + adj_m * m_j * m_j
    adj_m_j = -J * n.dot(adj_v_j) / (m_j * m_j) + adj_m * m_i * m_i
    return adj_d, adj_v_i + adj_w * n, -adj_d, adj_v_j - adj_w * n, adj_m_i, adj_m_j, m * w * adj_J

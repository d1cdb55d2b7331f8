import torch
from helpers.lessons import backend_promises  # registers static_replay
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
served = torch.compile(model, backend="static_replay")
requests = torch.randn(3, 5, 8)

answers = []
with torch.no_grad():
    for request in requests:
        answer = served(request)
        print(f"answered {answer.sum().item():.3f}")
        answers.append(answer.detach().view(5, 4))
print("sent", [round(answer.sum().item(), 3) for answer in answers])
